"""Measured layers with their mappings, in the form that the command `evaluate` takes.

A function removes the keys of calls, commands and requests from a hardware file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tilewright.base.profile import CORRECTED
from tilewright.cost.breakdown import latency_terms
from tilewright.cost.latency_terms import latency_term_names
from tilewright.cost.problem import fill
from tilewright.cost.waiting import waiting_arrays
from tilewright.hardware.attributes import WAITING, Figures
from tilewright.hardware.core import Core
from tilewright.hardware.waiting_checks import CACHES, ROWS, RUNS
from tilewright.search.evaluate import PreparedProblem, boundaries_of, prepare, workspace_of
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer, parse_equation

LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))
YamlTable = dict[str, Any]
"""Content of a hardware file."""
PRODUCT_EQUATION = "O[b][k]+=W[c][k]*I[b][c]"
"""Equation of a matrix product."""


def product_layer(sizes: Mapping[str, int], precision_bits: tuple[tuple[str, int], ...]) -> Layer:
    """Layer of a matrix product with constant weights. `sizes` has the sizes of the loops B, K and C, in the order in
    which the layer lists its loops.
    """
    return Layer(
        name="layer",
        operator_type="MatMul",
        operand_dimensions=parse_equation(PRODUCT_EQUATION),
        loop_sizes=tuple(sizes.items()),
        relations=(),
        precision_bits=precision_bits,
        data_dimension_sizes=(),
        constant_operands=("W",),
    )


def without_keys(document: YamlTable) -> YamlTable:
    """Copy of a hardware file without the keys that describe calls, commands and requests. With this copy, the cost
    model predicts no waiting for calls, commands or requests.
    """
    keys = {*(one.key for one in WAITING), CACHES, ROWS, RUNS}

    def rest(table: YamlTable) -> YamlTable:
        return {key: value for key, value in table.items() if key not in keys}

    memories = {name: rest(memory) for name, memory in document["memories"].items()}
    return {**rest(document), "operational_array": rest(document["operational_array"]), "memories": memories}


def with_times(core: Core, document: YamlTable) -> Core:
    """Copy of a core with the times of calls, commands and requests that a hardware file gives.

    The hardware file `document` must be equal to the file of `core`, except for the values of these times. A fit tries
    thousands of values; reading and checking a whole file each time would take a hundred times as long.
    """

    def timed(figures: Figures, entry: YamlTable) -> Figures:
        given = {one.field: entry[one.key] for one in WAITING if one.key in entry and one.quantity == "number"}
        return tuple((name, given.get(name, value)) for name, value in figures)

    memories = []
    for memory in core.memories:
        entry = document["memories"][memory.name]
        caches = tuple(
            replace(cache, request_latency_cycles=float(given["request_latency_cycles"]))
            for cache, given in zip(memory.caches, entry.get(CACHES, ()), strict=True)
        )
        memories.append(replace(memory, figures=timed(memory.figures, entry), caches=caches))
    unit = document["operational_array"]
    array = replace(core.operational_array, figures=timed(core.operational_array.figures, unit))
    return replace(core, figures=timed(core.figures, document), operational_array=array, memories=tuple(memories))


@dataclass(frozen=True)
class MappedLayer:
    """Layer and mapping of a measurement, as the command `evaluate` takes them."""

    layer: Layer
    unrolling: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    order: tuple[tuple[str, int], ...]
    """Loop order: pairs (loop dimension, size), inner to outer."""
    boundaries: tuple[tuple[str, tuple[int, ...]], ...]
    """Pairs (operand, boundaries). The boundaries have one number for each memory of the operand, innermost first: the
    number of loops in this memory and in all memories inside it.
    """
    bare: Core
    """Core without the times of calls, commands and requests: its hardware file lacks their keys (`without_keys`)."""

    @cached_property
    def problem(self) -> PreparedProblem:
        """Input of the cost model for the layer and its spatial mapping, on the core `bare`. `parts` adds the times of
        calls, commands and requests.
        """
        return prepare(self.layer, self.bare, LINKS, self.unrolling, SearchOptions(model=CORRECTED.name))

    def parts(self, core: Core) -> dict[str, float]:
        """Terms of the latency on `core`, in cycles, by name, as `evaluate` computes them. Raises MappingError if the
        mapping does not fit.

        `core` can differ from `bare` only in the times of calls, commands and requests. `self.problem` does not depend
        on these times. It is therefore prepared only once, although a fit evaluates each mapping for hundreds of cores.
        """
        if self._latest and self._latest[0] is core:
            return dict(self._latest[1])
        fill(self.problem.arrays, waiting_arrays(self.layer, core))
        workspace = workspace_of(self.problem, self.order, boundaries_of(self.layer, dict(self.boundaries)))
        terms = dict(zip(latency_term_names(core), latency_terms(self.problem.arrays, workspace), strict=True))
        self._latest[:] = core, terms
        return dict(terms)

    @cached_property
    def _latest(self) -> list[Any]:
        """Core and terms of the last call of `parts`; empty before the first call. The result is stored, because a fit
        calls `parts` many times in turn for one core: once for each value of a constant that does not change this core.
        """
        return []

    @cached_property
    def alone_parts(self) -> dict[str, float]:
        """Terms of the latency in cycles, by name, if the hardware file has no keys of calls, commands and requests."""
        return self.parts(self.bare)

    @property
    def alone(self) -> float:
        """Cycles that the cost model predicts if the hardware file has no keys of calls, commands and requests."""
        return float(sum(self.alone_parts.values()))

    def point(self) -> Mapping[str, Any]:
        """Mapping as the JSON object of one line in a file of points, which the command `evaluate` reads."""
        return {
            "layer": self.layer.name,
            "spatial_mapping": {side: dict(factors) for side, factors in self.unrolling},
            "loop_order": [list(loop) for loop in self.order],
            "memory_operand_links": dict(LINKS),
            "level_boundaries": {operand: list(found) for operand, found in self.boundaries},
        }
