"""LUNA16: its CSV files and FROC."""
