"""zigzag-dse 3.9.1: where data stay between layers, and the layouts of its results."""
