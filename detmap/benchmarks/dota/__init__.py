"""Dota."""
