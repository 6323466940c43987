"""Evaluation in parts: batch by batch, merged, or on a cluster."""
