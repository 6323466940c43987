"""Overlaps of benchmarks: boundaries of masks, and rotated boxes."""
