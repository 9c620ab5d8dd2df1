"""Which shards a space has, and of what each is made: without loading what makes them, for the plan of a workflow.

A shard says by a digest what it was made of: its own designs, the networks, what is fixed of mappings, the options and
the code. So a design more is one shard more, and results of another computer are as good as one's own.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.artifacts.canonical import canonical_text
from tilewright.artifacts.digests import DIGEST_BYTES, input_digest
from tilewright.artifacts.envelope import provenance
from tilewright.exploration.space import Space
from tilewright.exploration.space_options import stated_options

SCHEMA = "tilewright/space-shard"
SHARD_DESIGNS = 500
"""Designs of a shard where a space does not say: a minute or so for a network of fifty layers."""
STEP_OF = {False: "explore", True: "explore_systems"}
"""Whether designs are of several cores -> whose code evaluates them."""


@dataclass(frozen=True)
class Shard:
    """Some designs of a space that follow one another."""

    number: int
    first: int
    end: int

    @property
    def file_name(self) -> str:
        """Its file in the folder of shards."""
        return f"{self.number:05}.parquet"


def shards_of(space: Space) -> tuple[Shard, ...]:
    """The shards of a space, in its order."""
    size = space.shard_designs or SHARD_DESIGNS
    return tuple(
        Shard(number, first, min(first + size, len(space))) for number, first in enumerate(range(0, len(space), size))
    )


class ShardDigests:
    """Digests of shards: what does not depend on the design is read once."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @cached_property
    def made_of(self) -> dict[str, Any]:
        """Provenance of every shard: code, networks, mapping, options."""
        space = self.space
        inputs = {f"network {network.name}": input_digest(network.file) for network in space.networks}
        if space.mapping is not None:
            inputs["mapping"] = input_digest(space.mapping)
        return provenance(STEP_OF[space.is_of_systems], inputs, stated_options(space.options))

    def of(self, shard: Shard) -> str:
        """The digest of all that goes into a shard."""
        space = self.space
        digest = hashlib.blake2b(canonical_text([SCHEMA, self.made_of]).encode(), digest_size=DIGEST_BYTES)
        for index in range(shard.first, shard.end):
            design = space.design(index)
            said = [index, space.design_name(index), design.excluded_by, design.problem]
            if not design.excluded_by:
                said += [design.values, design.hardware]
            digest.update(json.dumps(said, separators=(",", ":"), default=str).encode())
        return digest.hexdigest()
