"""The parts in which the designs of a space are costed by families, and of what each is made: without loading what
makes them.
"""

import hashlib
import json
from functools import cached_property
from typing import Any

from tilewright.artifacts.canonical import canonical_text
from tilewright.artifacts.digests import DIGEST_BYTES
from tilewright.errors import InputError, Problem
from tilewright.exploration.families import Families
from tilewright.exploration.parts import Part, made_of, parts_of_size
from tilewright.exploration.space import Space

SCHEMA = "tilewright/family-costs"
MOST_PARTS = 200
LEAST_FAMILIES = 20
"""Of a part: some seconds for a network of fifty layers."""
MOST_TOGETHER = 120
"""Families that one process costs together at most."""
STEP = "family_costs"
ENGINE = "loma"
"""The search for which one costing of all orders says what every design of a family costs."""


def parts_of(space: Space) -> tuple[Part, ...]:
    """The parts of a space, in the order of its families."""
    families = Families(space)
    size = max(LEAST_FAMILIES, -(-len(families) // MOST_PARTS))
    shape = families.of_one_shape
    if shape <= MOST_TOGETHER:
        size = -(-size // shape) * shape  # what differs in sizes alone is costed together
    return parts_of_size(size, len(families))


def check_space(space: Space) -> None:
    """Raises InputError where the designs of a space cannot be costed by families."""
    if space.is_of_systems:
        message = "designs of several cores are not costed by families, which complete fronts need"
        raise InputError([Problem(message, space.file, path="accelerator")])
    engine = space.options.temporal_mapping_search_engine
    if engine != ENGINE:
        path = "options.temporal_mapping_search_engine"
        message = "complete fronts need the costs of all orders, which one search looks at"
        raise InputError([Problem(message, space.file, path=path, value=engine, allowed=ENGINE)])


class PartDigests:
    """Digests of parts: of the whole space, which is read once, and of the families of the part."""

    def __init__(self, space: Space) -> None:
        self.space = space

    @cached_property
    def made_of(self) -> dict[str, Any]:
        """Provenance of every part."""
        return made_of(self.space, STEP)

    @cached_property
    def said(self) -> str:
        """The digest of everything that the space says of its designs."""
        space = self.space
        axes = [[axis.name, axis.values, axis.settings] for axis in space.axes]
        laws = [[law.key, law.formula.expression.text] for law in space.laws]
        constraints = [constraint.expression.text for constraint in space.constraints_before]
        names = [network.name for network in space.networks]
        content = [SCHEMA, self.made_of, space.name, space.base, axes, laws, constraints, names]
        text = json.dumps([*content, space.rows, space.row_names], default=str)
        return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()

    def of(self, part: Part) -> str:
        """The digest of all that goes into a part."""
        text = canonical_text([self.said, part.first, part.end])
        return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
