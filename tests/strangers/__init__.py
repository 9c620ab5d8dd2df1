"""Files of strangers: shipped files with one thing changed that a person gets wrong, and what becomes of it."""
