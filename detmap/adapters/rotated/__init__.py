"""Readers of rotated boxes in files of DOTA and HRSC2016."""
