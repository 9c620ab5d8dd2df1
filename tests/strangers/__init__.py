"""Files of strangers: shipped files with one typical mistake, and the outcome of reading them."""
