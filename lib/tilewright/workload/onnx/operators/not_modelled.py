"""Operators that are **not modelled**, only listed in the coverage: the work depends on values or has no known loop
nest.

The shapes of these operators are known if onnx infers them. Every output depends on all inputs. An operator without a
lowering in any module is also not modelled. The exception is an operator that onnx defines by a function: the function
replaces the operator.
"""

import onnx

from tilewright.base.operator_groups import NOT_MODELLED
from tilewright.workload.onnx.lowering import Lowering, lowers

_REASON_OF = {(listed.domain, name): listed.reason for listed in NOT_MODELLED for name in listed.names.split()}
"""Reason why the operator is not modelled, by (domain, operator type)."""


def lower_not_modelled(op: Lowering) -> None:
    """List the operator in the coverage as not modelled, with the reason."""
    proto = op.node.proto
    reason = _REASON_OF["" if proto.domain == "ai.onnx" else proto.domain, proto.op_type]
    op.unsupported(f"{op.node.operator_type} is not modelled ({reason})")


for _listed in NOT_MODELLED:
    lowers(*_listed.names.split(), domain=_listed.domain)(lower_not_modelled)


def is_not_modelled(node: onnx.NodeProto) -> bool:
    """True if `NOT_MODELLED` lists the operator."""
    return ("" if node.domain == "ai.onnx" else node.domain, node.op_type) in _REASON_OF
