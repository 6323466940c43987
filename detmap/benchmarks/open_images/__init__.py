"""Open images."""
