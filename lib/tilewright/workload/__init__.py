"""Layers, operands, access relations and the network graph; readers for YAML and ONNX."""
