"""Text on the next change of a run on one core, for layers that no wider port makes faster, and for the energy.

Each sentence has a number of the run or of the cost model. The effect of a change is not predicted: `tilewright advise`
computes it (docs/bottlenecks/explain.md#if-no-wider-port-helps).
"""

import math
from collections.abc import Iterator, Sequence

from tilewright.base.harmless import ended_lines
from tilewright.cost.ledger import ACCESSES
from tilewright.results.array_use import LayerArrayUse
from tilewright.results.bottlenecks import ARRAY, CAUSE_OF_TERM, MOVING_DATA, WAITING, Bottlenecks
from tilewright.results.outer_traffic import Traffic
from tilewright.results.port_limits import UNLIMITED, saves_enough
from tilewright.results.run_ledger import ENERGY, LATENCY
from tilewright.results.text_tables import share_text
from tilewright.results.words import short_layer_name

TITLE = "What no wider port improves"
MOST_LAYERS = 3
"""Largest number of groups of equal layers for which lines are printed."""
ADVISED = (
    "computes the effect of longer sides of the array, larger memories, wider ports, lower energies, and other spatial"
    " mappings in the mapping file, one at a time"
)
"""Words on the changes that `tilewright advise` tries."""
_LEAST_OPERAND = 0.05
"""Smallest share of the energy with which an operand is named."""
_ONCE = 1.005
"""Largest ratio of moved bits to bits of the data at which all data count as moved once."""


def next_text(found: Bottlenecks, command: str = "") -> str:
    """Text on the layers without a limiting port, the longest first, and on the memory with most energy. `command` is
    the command that computes the effects of changes; '' if no command can. The text is '' if no number is known.
    """
    lines = [line for layers in _without_port(found) for line in _layer_lines(found, layers)]
    lines += _energy_lines(found)
    if not lines:
        return ""
    lines += [f"`{command}` {ADVISED}"] if command else []
    return ended_lines([TITLE]) + ended_lines(lines, "  ")


def _without_port(found: Bottlenecks) -> list[tuple[str, ...]]:
    """Groups of equal layers without a limiting port, the longest first. Groups with less than LEAST_SHARE of the
    latency of the run are left out.
    """
    total = found.total(LATENCY)
    cycles = {
        layers: sum(found.total(LATENCY, layer) for layer in layers)
        for layers in found.equal_layers
        if (limit := found.limits.get(layers[0])) is not None and not limit.is_limited
    }
    order = sorted((layers for layers, own in cycles.items() if saves_enough(own, total)), key=lambda one: -cycles[one])
    return order[:MOST_LAYERS]


def _layer_lines(found: Bottlenecks, layers: tuple[str, ...]) -> Iterator[str]:
    """Lines on a group of equal layers: its cycles, then the cycles of idle units and of data movement."""
    layer = layers[0]
    latency = found.total(LATENCY, layer)
    times, each = (f" x {len(layers)}", " each") if len(layers) > 1 else ("", "")
    share = "" if found.layer else f" ({share_text(latency * len(layers), found.total(LATENCY))} of the cycles)"
    yield f"{short_layer_name(layer, limit=40)}{times}{share}: {latency:,.0f} cycles{each}"
    ideal = _cycles_of_kind(found, layer, ARRAY)
    yield f"  array: {ideal:,.0f} cycles ({share_text(ideal, latency)}) if all its units always work"
    use = None if found.array is None else next((one for one in found.array.layers if one.layer == layer), None)
    if use is not None and saves_enough(use.stall_cycles, latency):
        yield from (f"  {line}" for line in _idle_lines(use, latency))
    moving, calls = (_cycles_of_kind(found, layer, kind) for kind in (MOVING_DATA, WAITING))
    most = found.limits[layer].unlimited_cycles
    if most is not None and math.isfinite(most) and saves_enough(moving, latency):
        saved = share_text(latency - most, latency) if most < latency else "nothing"
        yield (
            f"  {MOVING_DATA}: {moving:,.0f} cycles ({share_text(moving, latency)}); all ports with {UNLIMITED:,} times"
            f" the width would save {saved}"
        )
    if saves_enough(calls, latency):
        yield f"  {WAITING}: {calls:,.0f} cycles ({share_text(calls, latency)})"


def _cycles_of_kind(found: Bottlenecks, layer: str, kind: str) -> float:
    """Cycles of a layer with a kind of cause, such as MOVING_DATA."""
    own = (one for one in found.shares if (one.quantity, one.layer) == (LATENCY, layer))
    return math.fsum(one.value for one in own if CAUSE_OF_TERM.get(one.term, MOVING_DATA) == kind)


def _idle_lines(use: LayerArrayUse, latency: float) -> Iterator[str]:
    """Lines on the idle units of a layer: their cycles, the part that other loops avoid, and each side that is not
    full.
    """
    yield f"idle units: {use.stall_cycles:,.0f} cycles ({share_text(use.stall_cycles, latency)})"
    if use.by_mapping_file_cycles:
        yield (
            f"  the best generated spatial mapping would avoid {use.by_mapping_file_cycles:,.0f} of these cycles, but"
            " the mapping file fixes other loops"
        )
    for side in use.sides:
        if side.share >= 1:
            continue
        loops = " ".join(f"{name} {lanes}" for name, lanes in side.loops)
        lanes = math.prod(count for _, count in side.loops)
        told = f"  {side.array_dimension}: {side.lanes:.4g} of {side.units} units work on average"
        told += f" (loops {loops})" if loops else " (no loop)"
        if side.lanes <= lanes < side.units:  # the reference model can have fractional lanes: no such side holds them
            told += f"; with these loops, a side of {lanes} computes in the same cycles"
        yield told


def _energy_lines(found: Bottlenecks) -> list[str]:
    """Lines on the memory with most energy: how often the data of each operand move. [] unless this memory is the
    outermost memory of some operand.
    """
    total = found.total(ENERGY)
    accesses = [one for one in found.shares if (one.quantity, one.term) == (ENERGY, ACCESSES)]
    by_memory: dict[str, float] = {}
    for one in accesses:
        by_memory[one.memory] = by_memory.get(one.memory, 0.0) + one.value
    memory = max(by_memory, key=lambda name: by_memory[name], default="")
    lines = []
    for operand in dict.fromkeys(one.operand for one in accesses if one.memory == memory):
        energy = math.fsum(one.value for one in accesses if (one.memory, one.operand) == (memory, operand))
        own = [one for one in found.traffic if (one.memory, one.operand) == (memory, operand)]
        if own and energy >= _LEAST_OPERAND * total:
            lines.append(f"  {operand}: {share_text(energy, total)} of the energy; {_moves(own)}")
    if not lines:
        return []
    share = share_text(by_memory[memory], total)
    return [f"energy of accesses: of all memories, {memory} takes most ({share} of the energy)", *lines]


def _moves(traffic: Sequence[Traffic]) -> str:
    """Words on how often the data of an operand move between the outermost memory and the next inner level. A ratio
    above 1 means that data move several times, or that accesses do not fill whole words.
    """
    if all(one.is_direct for one in traffic):
        return "no inner memory holds its data: the array accesses them here"
    inner = [one for one in traffic if not one.is_direct]
    needed = math.fsum(one.needed_bits for one in inner)
    ratio = math.fsum(one.moved_bits for one in inner) / needed if needed else 1.0
    if ratio <= _ONCE:
        return "its data move once, the least within a layer"
    return f"the accessed words have {ratio:.3g} times the bits of its data; 1 is the least within a layer"
