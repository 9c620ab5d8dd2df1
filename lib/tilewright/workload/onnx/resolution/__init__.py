"""Resolution of an ONNX file: sizes, constants, branches, loops, and the types and shapes of its tensors."""
