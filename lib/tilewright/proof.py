"""Proofs: over what a bound, a gap or an optimum holds, as typed scopes whose words every verb, page and file uses."""

from dataclasses import dataclass
from typing import Literal

SpatialKind = Literal["given", "open", "largest divisors"]


@dataclass(frozen=True)
class SpatialMappings:
    """Which spatial mappings of a layer were searched."""

    kind: SpatialKind = "given"
    """given: that of the mapping file; open: what the file leaves open; largest divisors: the rule of Stream."""
    first: int | None = None
    """How many of the generated ones, where that is not all."""
    mixed: bool = False
    """Whether several loop dimensions may share a side of the array."""
    hinted: bool = False
    """Whether the mapping file names the loop dimensions that a side may take."""
    cut: bool = False
    """Whether factors are cut to ports and sizes of the innermost memories, as the profile cuts those of a file."""

    @property
    def text(self) -> str:
        """Words for them."""
        if self.kind == "given":
            return "the spatial mapping of the mapping file"
        if self.kind == "largest divisors":
            return (
                "all spatial mappings of another loop dimension on each side of the array that can be used, by its"
                " largest divisor that fits"
            )
        loops = "loop dimensions" if self.mixed else "one loop dimension"
        hints = " of those in spatial_mapping_hint" if self.hinted else ""
        where = f"{loops}{hints} on each side of the array that the mapping file leaves open"
        if self.first is not None:
            return (
                f"the first {self.first} spatial mappings of {where}, by divisors of the largest factor that has room"
            )
        cut = ", cut to ports and sizes of the innermost memories" if self.cut else ""
        return f"all spatial mappings of {where}, by divisors of its size or of the largest factor with room{cut}"


ORDERS = {
    "greedy": "every loop order that it allows, allocated to memories as in the reference",
    "free": "every loop order that it allows, with every choice of the loops that each memory keeps",
}
"""Memory allocation -> what is searched in time for each spatial mapping."""


def covered_text(covers: str, allocation: str | None) -> str:
    """What a proof of a layer covers: the spatial mappings, then what was searched for each; '' where nothing says the
    first."""
    orders = ORDERS.get(allocation or "")
    return f"{covers}, and for each {orders}" if covers and orders else covers
