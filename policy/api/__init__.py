"""Agents, keys and reviews over REST."""
