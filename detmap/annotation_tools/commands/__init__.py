"""Commands of annotation tools; see `detmap.cli.dispatch`."""
