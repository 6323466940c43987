"""Caltech Pedestrians: text of bbGt and results per image."""
