"""The pages for people that speak of everything, and what they stand on."""
