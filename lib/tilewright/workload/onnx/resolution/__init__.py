"""What an ONNX file leaves to be worked out: sizes, constants, branches, loops, the types and shapes of its tensors."""
