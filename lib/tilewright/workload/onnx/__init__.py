"""The ONNX front end: one module per operator family.

`read_onnx` turns a model into a `Workload`, and a `Coverage` that says what of it is costed and what is not.
"""

from tilewright.workload.onnx.coverage import Coverage, OperatorCoverage, coverage_table_text
from tilewright.workload.onnx.reader import ParsedNetwork, read_onnx

__all__ = ["Coverage", "OperatorCoverage", "ParsedNetwork", "coverage_table_text", "read_onnx"]
