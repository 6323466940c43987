"""KITTI: its text files and its 2D evaluation."""
