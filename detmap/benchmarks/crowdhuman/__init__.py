"""CrowdHuman: its odgt files, and the Jaccard index JI."""
