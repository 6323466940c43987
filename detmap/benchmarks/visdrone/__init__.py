"""Visdrone."""
