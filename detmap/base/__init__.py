"""What every package uses: files, arguments, immutable arrays, memory, threads."""
