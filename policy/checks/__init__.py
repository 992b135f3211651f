"""What is asked about every call: first the permission, then the rules, and where none speaks, the default."""
