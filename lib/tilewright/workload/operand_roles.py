"""Which input of a layer is the activation and which the weight (zigzag-dse 3.9.1: roles of operands)."""

from tilewright.workload.layer import Layer


def activation_operand(layer: Layer) -> str:
    """The input that other layers produce: the one that is not constant.

    Of two inputs that are both computed, the second; of two constants, the last one with the first sliding window,
    else the first.
    """
    inputs = layer.input_operands
    constants = layer.constant_operands
    if len(constants) == 1 and len(inputs) > 1:
        return next(operand for operand in reversed(inputs) if operand not in constants)
    if not constants:
        return inputs[1] if len(inputs) > 1 else inputs[0]
    window = layer.relations[0].data_dimension if layer.relations else None
    dimensions = dict(layer.operand_dimensions)
    with_window = [operand for operand in inputs if window in dimensions[operand]]
    return with_window[-1] if with_window else inputs[0]


def weight_operand(layer: Layer) -> str | None:
    """The other input; None if there is only one."""
    activation = activation_operand(layer)
    others = [operand for operand in layer.input_operands if operand != activation]
    return others[0] if others else None
