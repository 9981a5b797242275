"""The rows of a run for other programs: what it holds at one moment, read in pages."""
