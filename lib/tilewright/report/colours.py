"""Colours of operands in figures, the same in all of them."""

from collections.abc import Sequence

from matplotlib.colors import to_rgb

OPERAND_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
"""Colour-blind-safe palette of Okabe and Ito."""


def operand_colour(operand: str, operands: Sequence[str]) -> str:
    """The colour of a layer operand; `operands` are all of them."""
    # The three usual operands keep their colour whatever the order of an equation.
    usual = ("O", "W", "I")
    order = [*usual, *(name for name in operands if name not in usual)]
    return OPERAND_COLOURS[order.index(operand) % len(OPERAND_COLOURS)]


def lighter(colour: str, white: float) -> tuple[float, float, float]:
    """A colour with a share of white mixed in."""
    red, green, blue = (channel + (1 - channel) * white for channel in to_rgb(colour))
    return red, green, blue


def memory_operand_colour(operand: str, operands: Sequence[str]) -> str:
    """The colour of a memory operand: that of the layer operand it holds by default; `operands` are all of them."""
    usual = {"O": "O", "I2": "W", "I1": "I"}
    return operand_colour(usual.get(operand, operand), [usual.get(name, name) for name in operands])
