"""Runs costed by the plain model: mappings that `tilewright map` wrote, on the core of the run or another core."""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.hardware.core import Core
from tilewright.workload.layer import Layer

from tests.plain.model import Cost, PlainModel
from tests.plain.spatial import DoesNotFitError

KINDS = ("array", "spatial stall", "moving data")
PARTS = ("ideal", "spatial_stall", "temporal_stall", "onloading", "offloading", "drain")
WORDS = ("ideal", "spatial stall", "temporal stall", "on-loading", "off-loading", "drain")
MOST_SIZE = 3
"""Sets of up to this many ports are all tried."""
MOST_SETS = 150
"""Largest number of sets; with more, sets of three ports are not tried."""
POWERS = {"latency": (0, 1), "energy": (1, 0), "EDP": (1, 1)}
Port = tuple[str, str]
Ports = frozenset[Port]


@dataclass(frozen=True)
class PlainLayer:
    """The mapping of a record, and the layers of the network that have it."""

    names: tuple[str, ...]
    layer: Layer
    record: dict[str, Any]

    def cost(self, core: Core, dealt_on: Core | None = None) -> Cost:
        """Costs of the recorded mapping on a core. Raises DoesNotFitError.

        If the record has no level boundaries, the loops are allocated to the core's memories. With `dealt_on`, they are
        allocated as to the memories of that core.
        """
        record = self.record
        unrolling = tuple((side, tuple(loops.items())) for side, loops in record["spatial_mapping"].items())
        links = tuple(record["memory_operand_links"].items())
        sides = dict(core.operational_array.dimensions)
        if any(math.prod(factor for _, factor in loops) > sides[side] for side, loops in unrolling):
            raise DoesNotFitError  # on an array that is too small for the lanes
        plain = PlainModel(self.layer, core, links, unrolling, False, record["model"])
        given = record.get("level_boundaries")
        order = tuple((name, size) for name, size in record["loop_order"])
        for name, size in plain.temporal_sizes.items():
            if math.prod(own for one, own in order if one == name) != size:
                raise DoesNotFitError
        bounds = None if given is None else {o: tuple(given[o]) for o in plain.operands}
        if dealt_on is not None and bounds is None:
            other = PlainModel(self.layer, dealt_on, links, unrolling, False, record["model"])
            levels = other.allocate(order)
            bounds = {o: tuple(itertools.accumulate(map(len, own))) for o, own in levels.items()}
        return plain.cost(order, bounds)


@dataclass(frozen=True, eq=False)
class PlainRun:
    """All layers of a run, one after the other."""

    core: Core
    layers: tuple[PlainLayer, ...]
    """One plain layer for each record."""
    index: tuple[tuple[str, int, int], ...]
    """(layer, its record, its repeats), in order."""
    objective: str

    @classmethod
    def read(cls, folder: Path, core: Core, layers: dict[str, Layer]) -> "PlainRun":
        """The run in a folder."""
        rows = [json.loads(line) for line in (folder / "layers.jsonl").read_text("utf-8").splitlines()[1:-1]]
        summary = json.loads((folder / "summary.json").read_text("utf-8"))["payload"]
        found = tuple(
            PlainLayer(tuple(row.get("layer_names", [row["layer"]["name"]])), layers[row["layer"]["name"]], row)
            for row in rows
        )
        index = tuple((one[0], one[1], one[2] if len(one) > 2 else 1) for one in summary["layer_index"])
        return cls(core, found, index, summary["objective"])

    @cached_property
    def costs(self) -> list[Cost]:
        """Costs of each record."""
        return [one.cost(self.core) for one in self.layers]

    @cached_property
    def counts(self) -> list[int]:
        """Layers that each record stands for."""
        return [sum(count for _, place, count in self.index if place == k) for k in range(len(self.layers))]

    def total(self, values: Sequence[float]) -> float:
        """Sum over all layers of a number given for each record."""
        return math.fsum(float(value) * count for value, count in zip(values, self.counts, strict=True))

    @cached_property
    def latency(self) -> float:
        """Cycles of the run."""
        return self.total([float(cost.latency_cycles) for cost in self.costs])

    @cached_property
    def energy(self) -> float:
        """Energy of the run in pJ."""
        return self.total([cost.energy_pj for cost in self.costs])

    def value(self, energy: float, latency: float) -> float:
        """Objective of the run."""
        of_energy, of_latency = POWERS[self.objective]
        return float(energy**of_energy * latency**of_latency)

    def on(self, core: Core) -> tuple[float, float] | None:
        """(energy, latency) of the same mappings on another core; None if they do not fit."""
        try:
            costs = [one.cost(core) for one in self.layers]
        except (DoesNotFitError, ZeroDivisionError):
            return None
        return self.total([one.energy_pj for one in costs]), self.total([float(one.latency_cycles) for one in costs])

    # parts of the latency ---------------------------------------------------------------------------------------------

    def parts(self, record: int | None = None) -> dict[str, float]:
        """Cycles by part, for the layer of this record or for all layers."""
        if record is None:
            return {name: self.total([float(one.parts[name]) for one in self.costs]) for name in PARTS}
        return {name: float(self.costs[record].parts[name]) for name in PARTS}

    def kinds(self, record: int | None = None) -> dict[str, float]:
        """Cycles by kind."""
        parts = self.parts(record)
        rest = math.fsum(cycles for name, cycles in parts.items() if name not in ("ideal", "spatial_stall"))
        return dict(zip(KINDS, (parts["ideal"], parts["spatial_stall"], rest), strict=True))

    def causes(self, record: int | None = None) -> dict[str, float]:
        """Cycles by cause; a stall has the name of the first port for which the array waits that long."""
        found: dict[str, float] = {}
        for k in range(len(self.layers)) if record is None else [record]:
            count = self.counts[k] if record is None else 1
            for name, words in zip(PARTS, WORDS, strict=True):
                cycles = float(self.costs[k].parts[name]) * count
                port = self.waited_for(k) if name == "temporal_stall" else None
                cause = f"{words}, {' '.join(port)}" if port else words
                found[cause] = found.get(cause, 0.0) + cycles
        return {name: cycles for name, cycles in found.items() if cycles}

    def waited_for(self, record: int) -> Port | None:
        """The first port whose stall equals the stall of the layer; None if the layer does not stall."""
        cost = self.costs[record]
        stall = cost.parts["temporal_stall"]
        for k, p in sorted(cost.port_stalls):
            if stall > 0 and cost.port_stalls[k, p] == stall:
                memory = self.core.memories[k]
                return memory.name, memory.ports[p].name
        return None

    # ports ------------------------------------------------------------------------------------------------------------

    @cached_property
    def ports(self) -> list[Port]:
        """The ports that serve some link."""
        return [
            (memory.name, port.name)
            for memory in self.core.memories
            for place, port in enumerate(memory.ports)
            if any(index == place for index in memory.port_of.values())
        ]

    @cached_property
    def _saved(self) -> dict[tuple[int, Ports], float]:
        return {}

    def saved(self, ports: Ports, record: int | None = None) -> float:
        """Cycles that doubling the width of these ports saves, for one layer or for all."""
        if record is None:
            return self.total([self.saved(ports, k) for k in range(len(self.layers))])
        if (record, ports) not in self._saved:
            wider = self.layers[record].cost(wider_core(self.core, ports))
            self._saved[record, ports] = float(self.costs[record].latency_cycles - wider.latency_cycles)
        return self._saved[record, ports]

    def singles(self, record: int | None = None) -> dict[str, float]:
        """Port -> cycles that doubling its width saves."""
        return {" ".join(port): self.saved(frozenset((port,)), record) for port in self.ports}

    @property
    def looked_at(self) -> int:
        """Size of the largest sets of ports that are tried."""
        most = min(MOST_SIZE, len(self.ports))
        return most if math.comb(len(self.ports), most) <= MOST_SETS else 2

    def smallest(self, least: float, record: int | None = None) -> tuple[int, float] | None:
        """(size of the smallest sets of two or more ports that save at least `least`, most that such a set saves).

        None if no tried set saves that much.
        """
        for size in range(2, self.looked_at + 1):
            best = max(self.saved(frozenset(one), record) for one in itertools.combinations(self.ports, size))
            if best >= least:
                return size, best
        return None


def wider_core(core: Core, ports: Ports) -> Core:
    """The core with some ports twice as wide."""
    memories = []
    for memory in core.memories:
        wide = tuple(
            replace(port, bandwidth_max_bits=2 * port.bandwidth_max_bits) if (memory.name, port.name) in ports else port
            for port in memory.ports
        )
        memories.append(replace(memory, ports=wide))
    return replace(core, memories=tuple(memories))
