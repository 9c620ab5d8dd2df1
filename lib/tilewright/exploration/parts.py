"""Parts of a space, each with a file of its own, and their provenance: for shards and for the costs of families."""

from dataclasses import dataclass
from typing import Any

from tilewright.artifacts.digests import input_digest
from tilewright.artifacts.envelope import provenance
from tilewright.exploration.space import Space
from tilewright.exploration.space_options import stated_options


@dataclass(frozen=True)
class Part:
    """Some of what a space consists of (designs, or families of them) that follow one another."""

    number: int
    first: int
    end: int

    @property
    def file_name(self) -> str:
        """Its file in the folder of such parts."""
        return f"{self.number:05}.parquet"


def parts_of_size(size: int, count: int) -> tuple[Part, ...]:
    """`count` of them in parts of `size`, in their order; the last part has what is left."""
    return tuple(Part(number, first, min(first + size, count)) for number, first in enumerate(range(0, count, size)))


def made_of(space: Space, step: str) -> dict[str, Any]:
    """Provenance of every part that a step makes: code, networks, mapping, options."""
    inputs = {f"network {network.name}": input_digest(network.file) for network in space.networks}
    if space.mapping is not None:
        inputs["mapping"] = input_digest(space.mapping)
    return provenance(step, inputs, stated_options(space.options))
