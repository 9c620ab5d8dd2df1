"""Keys of a configuration, which are parameters of steps, and its schema."""
