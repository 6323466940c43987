"""Matching: which detection matches which ground-truth object."""
