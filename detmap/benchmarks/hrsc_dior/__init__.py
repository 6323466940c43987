"""Hrsc dior."""
