"""UAVDT: folders of sequences."""
