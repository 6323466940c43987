"""Sa co."""
