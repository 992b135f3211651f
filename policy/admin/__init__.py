"""Agents, people and reviews in the admin."""

from policy.admin import agent, people, version  # noqa: F401
