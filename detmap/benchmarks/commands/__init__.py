"""The command `suite`."""
