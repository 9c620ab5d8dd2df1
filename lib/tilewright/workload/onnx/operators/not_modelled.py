"""**Not modelled**, and told so: work that depends on values or that no loop nest here describes, and open loops.

Their shapes are known, and every output depends on all inputs.
"""

from tilewright.workload.onnx.lowering import Lowering, lowers


@lowers("NonZero", "Unique", "NonMaxSuppression", "Multinomial", "Det", "DFT", "STFT")
def lower_data_dependent(op: Lowering) -> None:
    """The work, and mostly the size of the result, depend on values, or no nest of this form exists."""
    op.unsupported(f"the work of {op.node.operator_type} is not modelled")


@lowers("Loop", "Scan")
def lower_open_loop(op: Lowering) -> None:
    """Loops that are not written out: the work is that of the body times a number that nobody knows."""
    op.unsupported(f"how often {op.node.proto.op_type} runs is decided at run time: not modelled")
