"""Compiled loops of boundaries and of KITTI."""
