"""ONNX front end: `resolution` determines shapes and constants; `operators` has one module per operator family.

`read_onnx` turns a model into a `Workload` and a `Coverage`. The coverage lists the operators of the model and says
which of them have costs.
"""

from tilewright.workload.onnx.coverage import Coverage, OperatorCoverage
from tilewright.workload.onnx.reader import ParsedNetwork, read_onnx

__all__ = ["Coverage", "OperatorCoverage", "ParsedNetwork", "read_onnx"]
