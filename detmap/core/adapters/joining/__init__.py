"""Joins the images and classes of detections to those of the ground truth."""
