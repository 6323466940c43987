"""Boxes in memory: arrays, and batches of a training loop."""
