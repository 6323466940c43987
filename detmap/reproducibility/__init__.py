"""Where a number comes from: explain, reproduce, published numbers, receipts, other tools."""
