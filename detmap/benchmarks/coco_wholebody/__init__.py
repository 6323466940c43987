"""COCO-WholeBody: its files, and the evaluation of each part of the body."""
