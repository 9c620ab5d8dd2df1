"""Depth-first schedules: a network, cut into stacks, in tiles of a size and a mode; what each of them costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tilewright.depth_first.chain import Chain, read_chain
from tilewright.depth_first.ledger import LATENCY_PARTS, Ledger
from tilewright.depth_first.options import TileOptions
from tilewright.depth_first.reading import READINGS, Reading
from tilewright.depth_first.stack_cost import StackModel
from tilewright.depth_first.tile_costs import TileSearch
from tilewright.depth_first.tiles import MODES
from tilewright.errors import InputError, Problem, nearest_name
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.peers.defines.tile_costs import MODEL
from tilewright.workload.graph import Workload


@dataclass(frozen=True)
class Point:
    """What is to be costed."""

    mode: str
    tile_x: int
    tile_y: int
    """Positions of the output of the last layer of each stack."""


@dataclass(frozen=True)
class Stack:
    """A part of a schedule: layers that run depth-first."""

    first: int
    last: int
    mode: str
    tile_x: int
    tile_y: int
    ledger: Ledger


@dataclass(frozen=True)
class DepthFirstSchedule:
    """A depth-first schedule of a network, with what it costs."""

    chain: Chain
    reading: Reading
    stacks: tuple[Stack, ...]

    @cached_property
    def ledger(self) -> Ledger:
        """The sum over the stacks."""
        total = Ledger()
        for stack in self.stacks:
            total.add(stack.ledger)
        return total

    @property
    def energy_pj(self) -> float:
        """Of all tiles and copies."""
        return self.ledger.energy_pj

    @property
    def latency_cycles(self) -> float:
        """Of all tiles and copies, one after the other."""
        return self.ledger.latency_cycles(self.reading.counts_offloading)

    @property
    def repeated_macs(self) -> int:
        """Multiply-accumulates beyond those of the layers: what tiles compute again."""
        return self.ledger.mac_count - sum(entry.layer.mac_count for entry in self.chain.layers)

    def row(self) -> dict[str, Any]:
        """A row of the table; the tile is that of the first stack."""
        first, ledger = self.stacks[0], self.ledger
        top = self.chain.core.memories[-1].name
        row: dict[str, Any] = {
            "mode": first.mode,
            "tile_x": first.tile_x,
            "tile_y": first.tile_y,
            "stacks": len(self.stacks),
            "tiles": ledger.tile_count,
            "energy_pj": self.energy_pj,
            "latency_cycles": self.latency_cycles,
            "macs": ledger.mac_count,
            "repeated_macs": self.repeated_macs,
        }
        row |= {f"{part}_cycles": ledger.cycles[part] for part in LATENCY_PARTS}
        row |= {f"{name}_energy_pj": value for name, value in ledger.terms_pj.items()}
        by_memory = dict.fromkeys([memory.name for memory in self.chain.core.memories], 0.0)
        for (memory, _), value in ledger.memory_pj.items():
            by_memory[memory] += value
        row |= {f"{memory}_energy_pj": value for memory, value in by_memory.items()}
        row["top_read_words"] = sum(v for (memory, _), v in ledger.read_words.items() if memory == top)
        row["top_written_words"] = sum(v for (memory, _), v in ledger.written_words.items() if memory == top)
        return row

    def as_object(self) -> dict[str, Any]:
        """All of it as JSON values."""
        names = [entry.layer.name for entry in self.chain.layers]
        return {
            "reading": self.reading.name,
            "energy_pj": self.energy_pj,
            "latency_cycles": self.latency_cycles,
            "macs": self.ledger.mac_count,
            "repeated_macs": self.repeated_macs,
            "stacks": [
                {
                    "layers": names[stack.first : stack.last + 1],
                    "mode": stack.mode,
                    "tile_x": stack.tile_x,
                    "tile_y": stack.tile_y,
                    **_ledger_object(stack.ledger, self.reading),
                }
                for stack in self.stacks
            ],
        }


def _ledger_object(ledger: Ledger, reading: Reading) -> dict[str, Any]:
    return {
        "tiles": ledger.tile_count,
        "macs": ledger.mac_count,
        "energy_pj": ledger.energy_pj,
        "latency_cycles": ledger.latency_cycles(reading.counts_offloading),
        "cycles": dict(ledger.cycles),
        "terms_pj": dict(ledger.terms_pj),
        "accesses": ledger.accesses("cause"),
    }


def schedules_of(
    problem: tuple[Workload, Core, Mapping],
    points: Sequence[Point],
    cuts: Sequence[str],
    options: TileOptions,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[DepthFirstSchedule, ...]:
    """The cost of each point. Layers of tiles that are alike are searched once for all of them.

    `cuts` are the names of the layers, besides the last one, after which a stack ends. Raises InputError for networks
    that are no chains, unknown names and sizes below 1, MappingError where a layer of a tile fits in no way.
    """
    model = stack_model(problem, options)
    stacks = stacks_of(model.chain, cuts, points)
    found = []
    for point in points:
        tile = (point.tile_x, point.tile_y)
        parts = [
            Stack(first, last, point.mode, *tile, model.cost(first, last, tile, point.mode)) for first, last in stacks
        ]
        found.append(DepthFirstSchedule(model.chain, model.reading, tuple(parts)))
        advance(1)
    return tuple(found)


def stack_model(problem: tuple[Workload, Core, Mapping], options: TileOptions) -> StackModel:
    """What costs the stacks of a network. Raises InputError for one that is no chain."""
    reading = READINGS[options.reading]
    if reading.own_tile_costs:
        options = replace(options, model=MODEL, objective="energy")
    workload, core, mapping = problem
    chain = read_chain(workload, core, mapping, options.profile)
    return StackModel(chain, reading, TileSearch(chain, options, reading))


def stacks_of(chain: Chain, cuts: Sequence[str], points: Sequence[Point]) -> list[tuple[int, int]]:
    """(first layer, last layer) of each stack. Raises InputError for all that is wrong with cuts and points."""
    names = [entry.layer.name for entry in chain.layers]
    problems = [
        Problem("no such layer to cut after", path="cut", value=repr(name), nearest=nearest_name(name, names[:-1]))
        for name in cuts
        if name not in names
    ]
    problems += [
        Problem("nothing follows this layer, so no stack can be cut off after it", path="cut", value=repr(name))
        for name in cuts
        if names and name == names[-1]
    ]
    problems += [
        Problem(
            "no such mode",
            path="mode",
            value=repr(mode),
            allowed=", ".join(MODES),
            nearest=nearest_name(mode, list(MODES)),
        )
        for mode in dict.fromkeys(point.mode for point in points)
        if mode not in MODES
    ]
    for key in ("tile_x", "tile_y"):
        sizes = dict.fromkeys(getattr(point, key) for point in points)
        wrong = [size for size in sizes if type(size) is not int or size < 1]
        problems += [
            Problem("tiles have whole numbers of positions", path=key, value=repr(w), allowed="from 1") for w in wrong
        ]
    if problems:
        raise InputError(problems)
    ends = sorted({names.index(name) for name in cuts} | {len(names) - 1})
    return list(zip([0, *[end + 1 for end in ends[:-1]]], ends, strict=True))
