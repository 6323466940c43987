"""Coco wholebody."""
