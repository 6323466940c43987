"""Detections without scores."""
