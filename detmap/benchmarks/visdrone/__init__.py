"""VisDrone: its folders, and recall of the first detections."""
