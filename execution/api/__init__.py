"""Calls over REST: the native door, and reading what became of a call."""
