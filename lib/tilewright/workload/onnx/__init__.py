"""ONNX front end: `resolution` settles shapes and constants, `operators` has a module per operator family.

`read_onnx` turns a model into a `Workload`, and a `Coverage` that says which of its operators have costs.
"""

from tilewright.workload.onnx.coverage import Coverage, OperatorCoverage
from tilewright.workload.onnx.reader import ParsedNetwork, read_onnx

__all__ = ["Coverage", "OperatorCoverage", "ParsedNetwork", "read_onnx"]
