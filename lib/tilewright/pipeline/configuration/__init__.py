"""Keys of a configuration (the parameters of the steps of a run), and the schema of a configuration."""
