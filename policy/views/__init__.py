"""The pages for people: approvals to decide, and the policy that asks for them."""
