"""Tables with named columns: CSV, Parquet and data frames."""
