"""Events and seals over REST: read, search, export; nothing here writes."""
