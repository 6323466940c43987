"""Scoreless."""
