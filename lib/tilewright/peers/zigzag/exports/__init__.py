"""Results in the layouts of zigzag-dse 3.9.1, for programs that read that tool's output."""
