"""Loops whose number of iterations is decided at run time: not modelled; all others are written out before."""

from tilewright.workload.onnx.lowering import Lowering, lowers


@lowers("Loop", "Scan")
def lower_open_loop(op: Lowering) -> None:
    """Not modelled: the work is that of the body times a number that nobody knows."""
    op.unsupported(f"how often {op.node.proto.op_type} runs is decided at run time: not modelled")
