"""COCO JSON: instances files, results lists, LVIS files."""
