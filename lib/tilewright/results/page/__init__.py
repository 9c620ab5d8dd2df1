"""The page of results: all runs as one HTML file that needs nothing else."""
