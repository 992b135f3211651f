"""Agents, people and reviews in the admin."""

from policy.admin import accessrequest, agent, notice, people, permissions, version  # noqa: F401
