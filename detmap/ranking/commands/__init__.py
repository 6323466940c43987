"""The command `rank`."""
