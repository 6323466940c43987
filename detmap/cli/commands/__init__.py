"""One module per command, each with `add`, `run` and `EXAMPLES`."""
