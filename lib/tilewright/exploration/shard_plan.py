"""Which shards a space has, and of what each is made: without loading what makes them, for the plan of a workflow.

A shard says by a digest what it was made of: its own designs, the networks, what is fixed of mappings, the options and
the code. So a design more is one shard more, and results of another computer are as good as one's own.
"""

import hashlib
import json
from functools import cached_property
from typing import Any

from tilewright.artifacts.canonical import canonical_text
from tilewright.artifacts.digests import DIGEST_BYTES
from tilewright.exploration.parts import Part, made_of, parts_of_size
from tilewright.exploration.space import Space

SCHEMA = "tilewright/space-shard"
SHARD_DESIGNS = 500
"""Designs of a shard where a space does not say: a minute or so for a network of fifty layers."""
STEP_OF = {False: "explore", True: "explore_systems"}
"""Whether designs are of several cores -> whose code evaluates them."""


def shards_of(space: Space) -> tuple[Part, ...]:
    """The shards of a space: parts of its designs, in its order."""
    return parts_of_size(space.shard_designs or SHARD_DESIGNS, len(space))


class ShardDigests:
    """Digests of shards: what does not depend on the design is read once."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @cached_property
    def made_of(self) -> dict[str, Any]:
        """Provenance of every shard."""
        return made_of(self.space, STEP_OF[self.space.is_of_systems])

    def of(self, shard: Part) -> str:
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
