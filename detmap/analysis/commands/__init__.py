"""The commands `diagnose`, `doctor` and `report`, and what `eval` asks of the doctor."""
