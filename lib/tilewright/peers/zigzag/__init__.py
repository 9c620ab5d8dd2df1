"""zigzag-dse 3.9.1: its reading of ONNX, its rules for data that stay between layers, and its layouts of results."""
