"""**Not modelled**, and named in the coverage: work that depends on values or that no loop nest here describes.

Their shapes are known, and every output depends on all inputs.
"""

from tilewright.workload.onnx.lowering import Lowering, lowers


@lowers("NonZero", "Unique", "NonMaxSuppression", "Multinomial", "Det", "DFT", "STFT")
def lower_data_dependent(op: Lowering) -> None:
    """The work, and mostly the size of the result, depend on values, or no nest of this form exists."""
    op.unsupported(f"the work of {op.node.operator_type} is not modelled")
