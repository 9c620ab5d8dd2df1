"""Resolution of an ONNX file before its operators are lowered: sizes of dynamic dimensions, constants, branches, loops,
and the types and shapes of all tensors.
"""
