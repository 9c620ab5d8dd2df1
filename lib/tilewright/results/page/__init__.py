"""Page of results: one HTML file with all runs, which needs no other files."""
