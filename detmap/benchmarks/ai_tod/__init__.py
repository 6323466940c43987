"""Ai tod."""
