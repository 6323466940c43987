"""Compiled scanners of files."""
