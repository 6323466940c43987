"""PASCAL VOC: annotation XML and comp4 text."""
