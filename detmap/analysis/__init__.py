"""What is wrong with a detector or with its files: doctor, error analysis, HTML report."""
