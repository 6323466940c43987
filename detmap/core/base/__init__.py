"""Helpers for all packages: files, arguments, immutable arrays, memory, threads."""
