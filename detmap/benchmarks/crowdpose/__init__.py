"""CrowdPose: AP by the crowding of images."""
