"""Evaluation in bounded memory: detections are written to a temporary file and matched in parts."""
