"""Resolution of an ONNX file: sizes, constants, branches, loops, the types and shapes of its tensors."""
