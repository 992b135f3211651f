"""The registry over REST, and the pieces every part of /api/ shares."""
