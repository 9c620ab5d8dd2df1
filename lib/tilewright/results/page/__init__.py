"""Page of results: all runs as one HTML file without further files."""
