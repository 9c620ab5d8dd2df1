"""Division of a space into parts, with the file name and the input digest of each part.

Other modules compute the contents of the parts.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.base.artifacts.digests import DIGEST_BYTES, canonical_text, digest_of_bytes, input_digest
from tilewright.base.artifacts.envelope import provenance
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.designs.columns import ACCESS
from tilewright.designs.families import Families
from tilewright.designs.space import Space, stated_options


@dataclass(frozen=True)
class SpacePart:
    """Part of a space: consecutive designs, or consecutive families of designs."""

    number: int
    first: int
    end: int

    @property
    def file_name(self) -> str:
        """Name of the part's file in the folder of the parts."""
        return f"{self.number:05}.parquet"


def parts_of_size(size: int, count: int) -> tuple[SpacePart, ...]:
    """Parts with `size` consecutive items each, for `count` items. The last part has the remainder."""
    return tuple(
        SpacePart(number, first, min(first + size, count)) for number, first in enumerate(range(0, count, size))
    )


def made_of(space: Space, step: str) -> dict[str, Any]:
    """Provenance that is equal for all parts of a step: code, networks, mapping, options."""
    inputs = {f"network {network.name}": input_digest(network.file) for network in space.networks}
    if space.mapping is not None:
        inputs["mapping"] = input_digest(space.mapping)
    given = {
        key: {network.name: dict(own) for network in space.networks if (own := getattr(network.options, key))}
        for key in ("bits", "zeros")
    }
    stated = stated_options(space.options) | {key: tables for key, tables in given.items() if tables}
    return provenance(step, inputs, stated)


COSTS_SCHEMA = "tilewright/family-costs"
MOST_PARTS = 200
LEAST_FAMILIES = 20
"""Smallest number of families in a part; only the last part can have fewer. Costing this number of families takes some
seconds for a network of fifty layers.
"""
MOST_TOGETHER = 120
"""Largest number of families whose costs one process computes together."""
STEP = "family_costs"
ENGINE = "loma"
"""Search engine that evaluates all loop orders. With this engine, one search gives the costs of all designs of a
family.
"""


def parts_of(space: Space) -> tuple[SpacePart, ...]:
    """Parts of a space, each with consecutive families of designs, in the order of the families."""
    families = Families(space)
    size = max(LEAST_FAMILIES, -(-len(families) // MOST_PARTS))
    shape = families.of_one_shape
    if shape <= MOST_TOGETHER:
        size = -(-size // shape) * shape  # families that differ only in sizes are costed together
    return parts_of_size(size, len(families))


def check_space(space: Space) -> None:
    """Raise InputError if the costs of the space cannot be computed by families.

    This is the case if designs have several cores, if a constraint limits access times of memories, or if the search
    engine does not evaluate all loop orders.
    """
    if space.is_of_systems:
        message = "complete fronts are not available for designs with several cores; use `tilewright explore`"
        raise InputError([Problem(message, space.file, path="accelerator")])
    limits = [one.expression for one in space.constraints_after if {*ACCESS} & {*one.expression.names}]
    if limits:
        message = (
            "complete fronts have no access times of memories, so this constraint cannot be checked;"
            " use `tilewright explore`, or restrict the values of the axes instead"
        )
        raise InputError(Problem(message, space.file, path="constraints", value=one.text) for one in limits)
    engine = space.options.temporal_mapping_search_engine
    if engine != ENGINE:
        path = "options.temporal_mapping_search_engine"
        message = "complete fronts need the costs of all loop orders, which only one search engine computes"
        raise InputError([Problem(message, space.file, path=path, value=engine, allowed=ENGINE)])


class PartDigests:
    """Digests of the inputs of parts. Inputs that parts share are read only once. The digest of a part also depends on
    which families the part has.

    `told` is the provenance that an existing file of results contains. If it is None, the provenance is computed from
    the present inputs.
    """

    def __init__(self, space: Space, told: dict[str, Any] | None = None) -> None:
        self.space, self._told = space, told

    @cached_property
    def made_of(self) -> dict[str, Any]:
        """Provenance that is equal for all parts."""
        return made_of(self.space, STEP) if self._told is None else self._told

    @cached_property
    def said(self) -> str:
        """Digest of all inputs that the parts share: provenance, and everything in the space file that affects its
        designs.
        """
        space = self.space
        axes = [[axis.name, axis.values, axis.settings] for axis in space.axes]
        laws = [[law.key, law.formula.expression.text] for law in space.laws]
        constraints = [constraint.expression.text for constraint in space.constraints_before]
        names = [network.name for network in space.networks]
        content = [COSTS_SCHEMA, self.made_of, space.name, space.base, axes, laws, constraints, names]
        text = json.dumps([*content, space.rows, space.row_names], default=str)
        return digest_of_bytes(text.encode())

    def of(self, part: SpacePart) -> str:
        """Digest of all inputs of one part."""
        text = canonical_text([self.said, part.first, part.end])
        return digest_of_bytes(text.encode())


SHARD_SCHEMA = "tilewright/space-shard"
SHARD_DESIGNS = 500
"""Number of designs in a shard, if the space file does not set `shard_designs` and the searches of designs are
independent. Evaluating this number of designs takes about a minute for a network of fifty layers.
"""
STEP_OF = {False: "explore", True: "explore_systems"}
"""Name of the step that evaluates the designs. The key is True if the designs have several cores."""


def shards_of(space: Space) -> tuple[SpacePart, ...]:
    """Shards of a space, in the order of the designs. A shard has a range of consecutive designs.

    If the searches of the designs in a block depend on each other, a shard has only whole blocks: the size of the shard
    is rounded up.
    """
    block = space.block_size
    size = space.shard_designs or (SHARD_DESIGNS if block == 1 else block)
    return parts_of_size(-(-size // block) * block, len(space))


class ShardDigests:
    """Digests of the inputs of shards. Inputs that shards share are read only once.

    `told` is the provenance that an existing file of results contains. If it is None, the provenance is computed from
    the present inputs.
    """

    def __init__(self, space: Space, told: dict[str, Any] | None = None) -> None:
        self.space, self._told = space, told

    @cached_property
    def made_of(self) -> JsonObject:
        """Provenance that is equal for all shards."""
        return made_of(self.space, STEP_OF[self.space.is_of_systems]) if self._told is None else self._told

    def of(self, shard: SpacePart) -> str:
        """Digest of all inputs of one shard."""
        space = self.space
        digest = hashlib.blake2b(canonical_text([SHARD_SCHEMA, self.made_of]).encode(), digest_size=DIGEST_BYTES)
        for index in range(shard.first, shard.end):
            design = space.design(index)
            said = [index, space.design_name(index), design.excluded_by, design.problem]
            if not design.excluded_by:
                said += [design.values, design.hardware]
            digest.update(json.dumps(said, separators=(",", ":"), default=str).encode())
        return digest.hexdigest()
