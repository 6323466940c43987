"""Matches to scores: curves, interpolation, operating points, means."""
