"""How much of a memory weights may take. Nothing heavy is imported here: the configuration is checked with this."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tilewright.parameters import Limits, Parameters, Told

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, init=False, eq=False, repr=False)
class WeightShare(Parameters):
    """Room for weights."""

    split_W_percentage: Annotated[  # noqa: N815  the name in Stream
        float, Limits(above=0, most=1), Told("wrong share", "a share above 0 and at most 1")
    ] = 1.0
    """Share of a memory that weights may take, above 0 and at most 1; of `cn_define_mode` 4 and of layer splitting."""


@dataclass(frozen=True, eq=False, repr=False)
class SplitOptions(WeightShare):
    """How much of a memory the weights of a part of a layer may take."""

    split_W_double_buffered: bool = False  # noqa: N815  the name in Stream
    """Leave room for two parts: the weights of the next are fetched while those of one are used."""

    @property
    def share(self) -> "Fraction":
        """The share for one part."""
        from fractions import Fraction  # here, because commands that split nothing start faster without

        share = Fraction(repr(self.split_W_percentage))
        return share / 2 if self.split_W_double_buffered else share
