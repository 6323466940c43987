"""``python -m detmap``."""

from detmap.cli import entry

entry()
