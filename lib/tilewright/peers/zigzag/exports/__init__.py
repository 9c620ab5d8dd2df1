"""Results in the file layouts of zigzag-dse 3.9.1, for programs that read the output of zigzag-dse."""
