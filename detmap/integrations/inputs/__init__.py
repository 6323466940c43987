"""What hosts pass to detmap: fields, rows and texts, checked."""
