"""WIDER FACE: its MAT files and results."""
