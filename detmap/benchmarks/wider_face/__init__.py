"""Wider face."""
