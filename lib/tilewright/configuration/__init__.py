"""What a configuration may say: its keys, which are parameters of steps, and its schema."""
