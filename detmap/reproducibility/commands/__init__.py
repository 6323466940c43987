"""One module per command that checks a number, each with `add`, `run` and `EXAMPLES`."""
