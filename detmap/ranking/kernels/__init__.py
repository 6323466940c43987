"""Compiled loops of ranked lists."""
