"""Agents, people, reviews and policy in the admin."""

from policy.admin import accessrequest, agent, notice, people, permissions, revision, version  # noqa: F401
