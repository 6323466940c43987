"""Compiled loops of weighted, resampled and tied curves."""
