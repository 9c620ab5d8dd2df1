"""What a plan runs: the layers of each kind of tile with where their tensors lie, and the copies between memories."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tilewright.attention.shape import (
    DIVIDE,
    FACTOR,
    MERGE_MOST,
    MERGE_OUTPUT,
    MERGE_SUM,
    MOST,
    POWERS,
    RESCALE_OUTPUT,
    RESCALE_SUM,
    SCORES,
    SUM,
    VALUES,
    AttentionShape,
)
from tilewright.attention.space import Memories, Plan, Tile
from tilewright.attention.visits import split, visits
from tilewright.workload.layer import OUTPUT

QUERIES, KEYS, VALUES_IN, SCORE, STATISTICS, RESULT = "queries", "keys", "values", "scores", "statistics", "output"
"""Kinds of tensors; STATISTICS are extremes, sums and factors of rows, an element each."""
TENSORS = (QUERIES, KEYS, VALUES_IN, SCORE, STATISTICS, RESULT)


class Step(NamedTuple):
    """A layer of a tile: the tensors that it reads, as first and second operand, and the one that it makes."""

    layer: str
    first: str
    second: str
    """'' for none."""
    made: str


def kind_of(tensor: str) -> str:
    """The kind of a tensor of a tile, by its name: the kind, a dot, and which one."""
    return tensor.partition(".")[0]


def steps(stages: tuple[str, ...], is_first: bool) -> tuple[Step, ...]:
    """The layers of a tile in order; the first tile of a row has nothing to merge with."""
    names = [f"{SCORE}.{place}" for place in range(len(stages) + 1)]
    most, total, output = f"{STATISTICS}.most", f"{STATISTICS}.sum", f"{RESULT}.so_far"
    powers = f"{SCORE}.powers"
    found = [Step(SCORES, QUERIES, KEYS, names[0])]
    found += [Step(stage, names[place], "", names[place + 1]) for place, stage in enumerate(stages)]
    scaled = names[-1]
    if is_first:
        return (
            *found,
            Step(MOST, scaled, "", most),
            Step(POWERS, scaled, most, powers),
            Step(SUM, powers, "", total),
            Step(VALUES, powers, VALUES_IN, output),
        )
    own_most, own_sum, own_output = f"{most}_of_tile", f"{total}_of_tile", f"{RESULT}.of_tile"
    factor = f"{STATISTICS}.factor"
    return (
        *found,
        Step(MOST, scaled, "", own_most),
        Step(MERGE_MOST, f"{most}_before", own_most, most),
        Step(POWERS, scaled, most, powers),
        Step(FACTOR, f"{most}_before", most, factor),
        Step(SUM, powers, "", own_sum),
        Step(RESCALE_SUM, f"{total}_before", factor, f"{total}_rescaled"),
        Step(MERGE_SUM, f"{total}_rescaled", own_sum, total),
        Step(VALUES, powers, VALUES_IN, own_output),
        Step(RESCALE_OUTPUT, f"{output}_before", factor, f"{output}_rescaled"),
        Step(MERGE_OUTPUT, f"{output}_rescaled", own_output, output),
    )


LAST = (Step(DIVIDE, f"{RESULT}.so_far", f"{STATISTICS}.sum", f"{RESULT}.final"),)
"""The end of a row of tiles."""
STATE = (f"{STATISTICS}.most", f"{STATISTICS}.sum", f"{RESULT}.so_far")
"""What of a row stays from tile to tile."""


class LayerProblem(NamedTuple):
    """A layer of a tile, to be mapped with the memories above its tensors cut off."""

    layer: str
    tile: Tile
    reach: tuple[tuple[str, int], ...]
    """(operand, memory where its tensor lies)."""
    reserved: tuple[tuple[int, int], ...]
    """(memory, bits of it that other tensors take)."""


class CopyProblem(NamedTuple):
    """Data that go from one memory to another."""

    tensor: str
    """Its kind."""
    bits: int
    source: tuple[str, int]
    """(operand of a layer, memory)."""
    target: tuple[str, int]


class Part(NamedTuple):
    """Something that a plan does so many times."""

    problem: LayerProblem | CopyProblem
    times: int


@dataclass(frozen=True)
class Program:
    """What a plan does in all."""

    parts: tuple[Part, ...]
    live_bits: tuple[tuple[int, int], ...]
    """(memory, the most bits of it that tensors take)."""

    def fits(self, memories: Memories) -> bool:
        """Whether tensors have room where they lie."""
        return all(memories.core.memories[k].size_bits >= bits for k, bits in self.live_bits)


def tensor_bits(shape: AttentionShape, kind: str, tile: Tile) -> int:
    """Of a tensor of a tile."""
    bits, rows = shape.bits, tile.units * tile.heads * tile.queries
    return {
        QUERIES: rows * shape.key_width * bits.queries,
        KEYS: tile.units * tile.keys * shape.key_width * bits.keys,
        VALUES_IN: tile.units * tile.keys * shape.value_width * bits.values,
        SCORE: rows * tile.keys * bits.activations,
        STATISTICS: rows * bits.activations,
        RESULT: rows * shape.value_width * bits.activations,
    }[kind]


def program(shape: AttentionShape, memories: Memories, plan: Plan) -> Program:
    """All parts of a plan with their counts."""
    found: Counter[LayerProblem | CopyProblem] = Counter()
    live: dict[int, int] = {}
    seen = visits(shape, plan.tile, plan.order)
    for units, times in split(shape.units, plan.tile.units):
        for counts, is_first in ((seen.first, True), (seen.later, False)):
            for size, count in counts.items():
                sequence = steps(shape.stages, is_first)
                _add(found, live, _tile(shape, memories, plan, Tile(units, *size), sequence), times * count)
        for (heads, queries), count in seen.rows.items():
            tile = Tile(units, heads, queries, plan.tile.keys)
            _add(found, live, _tile(shape, memories, plan, tile, LAST), times * count)
        for problem, count in _moves(shape, memories, plan, units):
            found[problem] += times * count
    parts = tuple([Part(problem, count) for problem, count in found.items()])
    return Program(parts, tuple(sorted(live.items())))


def _add(
    found: Counter[LayerProblem | CopyProblem],
    live: dict[int, int],
    tile: tuple[tuple[LayerProblem | CopyProblem, ...], tuple[tuple[int, int], ...]],
    count: int,
) -> None:
    for problem in tile[0]:
        found[problem] += count
    for memory, bits in tile[1]:
        live[memory] = max(live.get(memory, 0), bits)


def _moves(shape: AttentionShape, memories: Memories, plan: Plan, units: int) -> Iterator[tuple[CopyProblem, int]]:
    """What brings queries, keys and values to where they lie, and swaps outputs so far, for one tile of units."""
    seen = visits(shape, plan.tile, plan.order)
    whole = Tile(units, shape.heads, shape.queries, shape.keys)
    for kind, place, operand in ((QUERIES, plan.queries, "I"), (KEYS, plan.keys, "W"), (VALUES_IN, plan.values, "W")):
        source, target = (operand, memories.single(operand)[-1]), (operand, place.memory)
        if source == target:
            continue
        if place.is_whole:
            yield CopyProblem(kind, tensor_bits(shape, kind, whole), source, target), 1
            continue
        loads = (
            [(Tile(units, *size, 1), count) for size, count in seen.query_loads.items()]
            if kind == QUERIES
            else [(Tile(units, 1, 1, size), count) for size, count in seen.key_loads.items()]
        )
        for tile, count in loads:
            yield CopyProblem(kind, tensor_bits(shape, kind, tile), source, target), count
    place = plan.output
    if place.memory == memories.top or place.is_whole:
        return
    here, top = (OUTPUT, place.memory), (OUTPUT, memories.top)
    for (heads, queries), count in seen.output_loads.items():
        tile = Tile(units, heads, queries, 1)
        for kind, times in ((RESULT, 1), (STATISTICS, 2)):
            bits = tensor_bits(shape, kind, tile)
            yield CopyProblem(kind, bits, here, top), times * count
            yield CopyProblem(kind, bits, top, here), times * count


# --- one tile -------------------------------------------------------------------------------------------------------


class _Lying(NamedTuple):
    """A tensor in a memory."""

    tensor: str
    memory: int
    is_copy: bool = False
    """Where it lies as a second operand, besides where it was made."""


@lru_cache(maxsize=65536)
def _tile(
    shape: AttentionShape, memories: Memories, plan: Plan, tile: Tile, sequence: tuple[Step, ...]
) -> tuple[tuple[LayerProblem | CopyProblem, ...], tuple[tuple[int, int], ...]]:
    """The problems of a tile, and the most bits that tensors take of each memory while it runs."""
    problems: list[LayerProblem | CopyProblem] = []
    most: dict[int, int] = {}
    uses, rest = _last_uses(sequence), _whole_rest(shape, plan, tile)
    living = {_Lying(one, _place(plan, one)) for one in (QUERIES, KEYS, VALUES_IN, *_read_from_before(sequence))}
    for number, step in enumerate(sequence):
        made = _Lying(step.made, memories.top if step in LAST else _place(plan, step.made))
        own = {"I": _Lying(step.first, _place(plan, step.first)), OUTPUT: made}
        if step.second:
            second = own["W"] = _second(shape, memories, plan, step, tile)
            if second not in living:
                bits = tensor_bits(shape, kind_of(step.second), tile)
                source, target = (OUTPUT, _place(plan, step.second)), ("W", second.memory)
                problems.append(CopyProblem(kind_of(step.second), bits, source, target))
                living.add(second)
        living.add(made)
        taken = Counter(rest)
        for one in living - set(own.values()):
            taken[one.memory] += tensor_bits(shape, kind_of(one.tensor), tile)
        reserved = tuple(sorted([(k, bits) for k, bits in taken.items() if bits and k != memories.top]))
        reach = tuple(sorted([(operand, one.memory) for operand, one in own.items()]))
        sized = tile if step.layer in _OVER_KEYS or step.layer in shape.stages else tile._replace(keys=1)
        problems.append(LayerProblem(step.layer, sized, reach, reserved))
        for one in set(own.values()):
            taken[one.memory] += tensor_bits(shape, kind_of(one.tensor), tile)
        for k, bits in taken.items():
            if k != memories.top:
                most[k] = max(most.get(k, 0), bits)
        living = {one for one in living if uses.get((one.tensor, one.is_copy), len(sequence)) > number}
    return tuple(problems), tuple(sorted(most.items()))


_OVER_KEYS = (SCORES, MOST, POWERS, SUM, VALUES)


def _place(plan: Plan, tensor: str) -> int:
    places = {QUERIES: plan.queries, KEYS: plan.keys, VALUES_IN: plan.values}
    kind = kind_of(tensor)
    return plan.scores if kind == SCORE else places.get(kind, plan.output).memory


def _second(shape: AttentionShape, memories: Memories, plan: Plan, step: Step, tile: Tile) -> _Lying:
    """Where the second operand is read: where it lies, or else in the lowest memory of second operands with room."""
    place = _place(plan, step.second)
    if place in memories.seconds:
        return _Lying(step.second, place)
    bits = tensor_bits(shape, kind_of(step.second), tile)
    with_room = (k for k in memories.seconds if memories.core.memories[k].size_bits >= bits)
    return _Lying(step.second, next(with_room, memories.top), True)


def _read_from_before(sequence: tuple[Step, ...]) -> list[str]:
    """Tensors that are read before they are made, besides those from outside."""
    made: set[str] = {QUERIES, KEYS, VALUES_IN, ""}
    found = []
    for step in sequence:
        found += [tensor for tensor in (step.first, step.second) if tensor not in made]
        made |= {step.first, step.second, step.made}
    return found


def _last_uses(sequence: tuple[Step, ...]) -> dict[tuple[str, bool], int]:
    """(tensor, whether it is a copy) -> number of the last step that needs it; what is not there stays to the end."""
    uses: dict[tuple[str, bool], int] = {}
    for number, step in enumerate(sequence):
        uses[step.first, False] = number
        if step.second:
            uses[step.second, False] = uses[step.second, True] = number
    stays = () if sequence == LAST else STATE
    return {key: number for key, number in uses.items() if key[1] or key[0] not in (QUERIES, KEYS, VALUES_IN, *stays)}


def _whole_rest(shape: AttentionShape, plan: Plan, tile: Tile) -> dict[int, int]:
    """Memory -> bits of tensors that lie there as a whole, less those of the tile."""
    whole = Tile(tile.units, shape.heads, shape.queries, shape.keys)
    rest: Counter[int] = Counter()
    for kinds, place in (
        ((QUERIES,), plan.queries),
        ((KEYS,), plan.keys),
        ((VALUES_IN,), plan.values),
        ((RESULT, STATISTICS, STATISTICS), plan.output),
    ):
        for kind in kinds if place.is_whole else ():
            rest[place.memory] += tensor_bits(shape, kind, whole) - tensor_bits(shape, kind, tile)
    return rest
