"""Pairs to matches: which detection matches which ground-truth object."""
