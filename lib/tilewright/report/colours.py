"""Colours of operands and of layers in figures, the same in all of them."""

from collections.abc import Sequence

from matplotlib.colors import to_rgb

OPERAND_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
"""Colour-blind-safe palette of Okabe and Ito."""
_LAYER_DIGITS = """
    0072b2 e69f00 009e73 cc79a7 d55e00 56b4e9 87005a 5af096 4b4b0f f0c3e1
    4b2da5 964bb4 875a5a 87b400 007800 a587ff a5c3a5 a50f00 877800 2d4b69
    d2d200 f096ff c33c78 78e1ff ff8778 7887b4 a59669 ffc387 1e7869 5a78f0
    00c3a5 b4b4ff 694b87 693c3c d2a5b4 f05a69 b46969 0fa5b4 3c9600 ff78c3
    c3e196 5a5ac3 a55a0f 004bb4 0096e1 963c78 b469d2 00e1d2 c33c2d 005a4b
    5a692d 5a6987 5ad269 966996 b4b45a a596d2 698769 005a00 96960f 781e87
    1eb45a 784b00 f07800 d28769 c38700 6996ff e1a578 a50f4b 3c8796 78a596
    ffc31e 96c3e1 8769d2 870f2d ff96b4 c35aa5 2d5a96 2d874b d287e1 c3d2ff
    a5e1d2 00d2ff 96785a a5d269 693cb4 78b478 4b3c78 a587a5 ffb4ff f07896
    5a78c3 69c3c3 d2c387 e169c3 e1a5e1 963c3c f0b4a5 69964b 872d00 69d2a5
"""
LAYER_COLOURS = tuple(f"#{digits}" for digits in _LAYER_DIGITS.split())
"""Those of OPERAND_COLOURS, then each time the colour farthest from all before in the Oklab space, of those that are
neither light, dark, grey nor glaring."""
NO_LAYER_COLOUR = "#999999"


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


def layer_colour(layer: int) -> str:
    """The colour of a layer by its number; 100 layers have different ones, then they repeat. Grey for -1."""
    return LAYER_COLOURS[layer % len(LAYER_COLOURS)] if layer >= 0 else NO_LAYER_COLOUR


def text_colour(background: str) -> str:
    """Black or white, whichever reads better on a background."""
    red, green, blue = to_rgb(background)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
