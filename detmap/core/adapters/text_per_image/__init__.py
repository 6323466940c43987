"""Formats with one text file per image: YOLO, Cartucho, rafaelpadilla."""
