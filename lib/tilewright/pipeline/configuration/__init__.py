"""Keys of a configuration, which are parameters of the steps of a run, and the schema of a configuration."""
