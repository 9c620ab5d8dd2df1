"""Attacks on bounds and optimum of depth-first schedules, with random chains on random cores from a seed."""

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
from tilewright.base.errors import InputError, MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.hardware.core import Core, Memory
from tilewright.pipeline.sources import parse_mapping, parse_workload
from tilewright.tiles.depth_first.bounds import check_boundable, quick_bounds, stack_bounds, stack_floor
from tilewright.tiles.depth_first.certificate import DepthFirstSpace
from tilewright.tiles.depth_first.chain import Chain
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.optimum import find_optimum
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.tiles.depth_first.schedule import stack_model
from tilewright.tiles.depth_first.stack_cost import StackModel
from tilewright.workload.layer import Layer

from tests.plain.depth_first import costs_of_stacks, least_value
from tests.plain.problems import random_core, random_ports
from tests.plain.tally import Tally

CHANNELS = (1, 1, 2, 3, 4, 5, 7, 8, 12, 24)
ARRAY_SIZES = (1, 2, 2, 3, 4, 4, 5, 8, 16)
TILES_TRIED = 6
TRIES = 60
"""Number of cores that are drawn for a chain until one can run it."""


def attack(seed: int) -> Tally:
    """Compare bounds of random tiles of a random chain with their costs, and for small chains the optimum with all
    schedules.
    """
    tally = Tally()
    rng = random.Random(seed)
    is_small = rng.random() < 0.25
    model = None
    while model is None:
        model = random_model(rng, rng.choice((2, 3, 4)) if is_small else rng.choice((3, 6, 9, 20)))
    tally.counts["chains"] += 1
    tally.counts[f"chains of {len(model.chain.layers)} layers"] += 1
    for _ in range(TILES_TRIED):
        _compare_tile(rng, model, seed, tally)
    if is_small:
        _compare_optimum(rng, model, seed, tally)
    return tally


def random_model(rng: random.Random, largest: int) -> StackModel | None:
    """The cost model of a random chain on a core that can run it; None if no core is found."""
    layers = random_chain(rng, largest)
    try:
        workload = parse_workload(layers)
    except InputError:
        return None
    (middle, *_) = [node.layer for node in workload.layers_in_order if node.layer is not None]
    has_registers = rng.random() < 0.6
    for _ in range(TRIES):
        array = tuple((name, rng.choice(ARRAY_SIZES)) for name in ("D1", "D2", "D3", "D4")[: rng.randint(1, 4)])
        core = _register_core(rng, middle, array) if has_registers else random_core(rng, middle, array)
        mapping = [{"name": layer["name"], "spatial_mapping": _sides(rng, layer, array)} for layer in layers]
        objective = rng.choice(list(OBJECTIVES))
        options = TileOptions(objective=objective, lpf_limit=rng.choice((3, 5)))
        try:
            model = stack_model((workload, core, parse_mapping([*mapping, {"name": "default"}])), options)
            check_boundable(model.chain, options.profile)
            last = len(model.chain.layers) - 1
            whole = [model.chain.layers[last].window(axis).output_size for axis in (0, 1)]
            model.cost(0, last, (whole[0], whole[1]), "fully-cached")
        except (InputError, MappingError):
            continue
        return model
    return None


def _register_core(rng: random.Random, layer: Layer, array: tuple[tuple[str, int], ...]) -> Core:
    """A core with registers for one or two elements below memories that all lanes share, as most accelerators have."""
    core = random_core(rng, layer, array)
    names = tuple(name for name, _ in array)
    memories = []
    for operand in ("I2", "O", "I1"):
        if rng.random() < (0.8, 0.8, 0.3)[("I2", "O", "I1").index(operand)]:
            served = tuple(name for name in names if rng.random() < 0.4)
            size = rng.choice((8, 16, 16, 24, 32, 64))
            ports = random_ports(rng, (operand,), False)
            price = rng.choice((0.01, 0.02, 1.0))
            memories.append(Memory(f"register_{operand}", size, price, price, (operand,), ports, served))
    top = [memory for memory in core.memories if memory.name.startswith("top")]
    for place in range(rng.choice((0, 1, 1, 2, 2))):
        for operands in rng.choice(((("I2",), ("I1", "O")), (("I1", "O"),), (("I1", "I2", "O"),), (("I1",), ("O",)))):
            size = rng.choice((64, 128, 256, 512, 1024, 4096, 16384))
            ports = random_ports(rng, operands, False)
            prices = (rng.choice((0.5, 2.0, 20.0)), rng.choice((0.5, 2.0, 20.0)))
            memories.append(Memory(f"shared_{place}_{operands[0]}", size, *prices, operands, ports, names))
    return replace(core, memories=(*memories, *top))


def random_chain(rng: random.Random, largest: int) -> list[dict[str, Any]]:
    """A chain of convolutions with random windows, strides, dilation, padding and narrow maps.

    It is made from the last layer to the first, so that sizes fit.
    """
    sizes = [rng.choice((1, rng.randint(1, largest), rng.randint(1, largest))) for _ in range(2)]
    channels = rng.choice(CHANNELS)
    count = rng.choice((1, 2, 2, 3, 3, 4))
    bits = rng.choice((4, 8, 8, 16))
    layers: list[dict[str, Any]] = []
    for place in reversed(range(count)):
        depthwise = rng.random() < 0.15
        before = channels if depthwise else rng.choice(CHANNELS)
        axes = [_random_window(rng, size, largest) for size in sizes]
        layers.insert(0, _layer(rng, place, (channels, before, depthwise), sizes, axes, bits))
        sizes, channels = [axis[4] for axis in axes], before
    return layers


def _random_window(rng: random.Random, size: int, largest: int) -> tuple[int, int, int, tuple[int, int], int]:
    """(kernel, stride, dilation, padding, positions of the input) of a random window."""
    for _ in range(20):
        kernel, stride = rng.choice((1, 1, 2, 3, 3, 4, 5)), rng.choice((1, 1, 1, 2, 3))
        dilation = rng.choice((1, 1, 1, 2))
        extent = (kernel - 1) * dilation + 1
        most = rng.choice(((extent - 1) // 2, extent - 1))
        pad = (rng.randint(0, most), rng.randint(0, most))
        present = (size - 1) * stride + extent - sum(pad)
        if 1 <= present <= 2 * largest:
            return kernel, stride, dilation, pad, present
    return 1, 1, 1, (0, 0), size


def _layer(
    rng: random.Random,
    place: int,
    channels: tuple[int, int, bool],
    sizes: list[int],
    axes: list[tuple[int, int, int, tuple[int, int], int]],
    bits: int,
) -> dict[str, Any]:
    made, read, depthwise = channels
    (fx, sx, dx, px, ix), (fy, sy, dy, py, iy) = axes
    final = rng.choice((bits, bits, bits, 4, 8, 16, 32))
    equation = "O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]"
    dims, values = ["B", "K", "C"], [1, made, read]
    if depthwise:
        equation = "O[b][g][oy][ox] += W[g][fy][fx] * I[b][g][iy][ix]"
        dims, values = ["B", "G"], [1, made]
    return {
        "id": place,
        "name": f"conv{place}",
        "operator_type": "Conv",
        "equation": equation,
        "dimension_relations": [f"ix = {sx}*ox + {dx}*fx", f"iy = {sy}*oy + {dy}*fy"],
        "loop_dims": [*dims, "OY", "OX", "FY", "FX"],
        "loop_sizes": [*values, sizes[1], sizes[0], fy, fx],
        "pr_loop_dims": ["IX", "IY"],
        "pr_loop_sizes": [ix, iy],
        "padding": [list(px), list(py)],
        "operand_precision": {
            "W": rng.choice((4, 8, 8, 16)),
            "I": bits,
            "O": rng.choice((8, 16, 24)),
            "O_final": final,
        },
        "operand_source": {"W": place, "I": max(0, place - 1)},
    }


def _sides(rng: random.Random, layer: dict[str, Any], array: tuple[tuple[str, int], ...]) -> dict[str, list[str]]:
    """One loop or none for each dimension of the array; no loop is on two dimensions."""
    loops = list(layer["loop_dims"])
    sides: dict[str, list[str]] = {}
    for name, size in array:
        sides[name] = []
        if loops and rng.random() < 0.8:
            loop = rng.choice(loops)
            loops.remove(loop)
            sides[name] = [f"{loop}, {rng.randint(1, size) if rng.random() < 0.3 else size}"]
    return sides


def _random_tile(rng: random.Random, chain: Chain, last: int) -> tuple[int, int]:
    most = [chain.layers[last].window(axis).output_size for axis in (0, 1)]
    return rng.randint(1, most[0]), rng.randint(1, most[1])


def _compare_tile(rng: random.Random, model: StackModel, seed: int, tally: Tally) -> None:
    """Check the bounds of a random tile of a random stack, and of this stack in any tiles."""
    chain = model.chain
    last = rng.randrange(len(chain.layers))
    first = rng.randint(0, last)
    tile, mode = _random_tile(rng, chain, last), rng.choice(list(MODES))
    try:
        ledger = model.cost(first, last, tile, mode)
    except MappingError:
        tally.counts["tiles that fit in no way"] += 1
        return
    tally.counts["tiles compared"] += 1
    bounds = stack_bounds(chain, first, last, mode, np.array([tile]))
    floor = stack_floor(chain, first, last)
    quick = quick_bounds(chain, first, last, mode, (np.array([tile[0]]), np.array([tile[1]])))
    costs = (ledger.energy_pj, ledger.latency_cycles())
    claims = {
        "energy of a tile": (float(bounds.energy_pj[0]), costs[0]),
        "latency of a tile": (float(bounds.latency_cycles[0]), costs[1]),
        "quick energy": (float(quick.energy_pj.sum()), costs[0]),
        "quick latency": (float(quick.latency_cycles.sum()), costs[1]),
        "energy of any tiles": (floor[0], costs[0]),
        "latency of any tiles": (floor[1], costs[1]),
    }
    for what, (bound, cost) in claims.items():
        if cost:
            tally.counts[f"{what}: bound above half the cost"] += bound > cost / 2
            tally.counts[f"{what}: bound above 98 % of the cost"] += bound > 0.98 * cost
        if not bound <= cost:
            text = f"layers {first} to {last}, {mode}, {tile[0]} x {tile[1]}: bound {bound!r}, cost {cost!r}"
            tally.wrong.append(f"seed {seed}, {what}: {text}")


def _compare_optimum(rng: random.Random, model: StackModel, seed: int, tally: Tally) -> None:
    """Compare the optimum with the best of all schedules."""
    objective = model.tile_costs.options.objective  # type: ignore[attr-defined]
    costs = costs_of_stacks(model)
    powers = OBJECTIVES[objective]
    count = len(model.chain.layers)
    least = least_value(costs, count, powers.energy, powers.latency)
    options = model.tile_costs.options  # type: ignore[attr-defined]
    if least == math.inf:
        tally.counts["spaces without a schedule"] += 1
        return
    found = find_optimum(model, DepthFirstSpace(), options)
    tally.counts["spaces searched through"] += 1
    tally.counts["schedules in these spaces"] += found.schedules_in_space
    tally.counts["stacks that the search costed"] += len(found.costed)
    tally.counts["stacks in these spaces"] += len(costs)
    tally.counts["spaces with stacks that fit in no way"] += bool(found.unmappable)
    if not found.is_proven or not math.isclose(found.value, least, rel_tol=1e-9):
        tally.wrong.append(f"seed {seed}, optimum of {objective}: {found.value!r}, by trying all {least!r}")
