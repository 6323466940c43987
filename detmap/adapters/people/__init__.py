"""Formats of benchmarks of faces and people: CrowdHuman, WIDER FACE, Caltech."""
