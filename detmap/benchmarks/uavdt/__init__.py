"""Uavdt."""
