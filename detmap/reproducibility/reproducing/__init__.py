"""Searches for the rules and inputs that give a published number."""
