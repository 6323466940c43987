"""SA-Co: its files and cgF1."""
