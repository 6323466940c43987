"""Caltech."""
