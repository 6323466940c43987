"""What several benchmarks need: overlaps of pairs, recognition of files, MAT files."""
