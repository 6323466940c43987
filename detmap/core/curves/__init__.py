"""Curves: AP interpolation, operating points, means over classes."""
