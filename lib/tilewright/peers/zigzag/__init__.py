"""zigzag-dse 3.9.1: how it reads ONNX, where data stay between layers, the layouts of its results."""
