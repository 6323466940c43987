"""Crowdpose."""
