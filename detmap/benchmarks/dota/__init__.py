"""DOTA: its text files, and detections on patches."""
