"""Readers of the files of annotation tools, one module a format."""
