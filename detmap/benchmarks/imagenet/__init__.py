"""ImageNet DET and VID: their files, and AP by speed of motion."""
