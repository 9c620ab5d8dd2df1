"""Results of attentions as tables, texts and JSON values.

A result has the best plan, its costs, the costs without fusion, and the certificate. The costs are the energy for each
tensor in each memory, and the cycles for each part of the latency.
"""

from collections.abc import Sequence
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import count_of
from tilewright.base.harmless import terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.proof import TilePlans, optimum_line
from tilewright.base.units import count_text, energy_text
from tilewright.tiles.attention.costs import AttentionCosts
from tilewright.tiles.attention.optimum import AttentionOptimum
from tilewright.tiles.attention.points import AttentionPoints
from tilewright.tiles.attention.program import TENSORS, TileLayerProblem
from tilewright.tiles.attention.space import AttentionPlan, TensorPlace, Tile
from tilewright.tiles.depth_first.stack_cost import Ledger

OUTERMOST, TILE, WHOLE = "outermost", "tile", "whole"


def problem_row(costs: AttentionCosts, problem: TileLayerProblem) -> list[Any]:
    """Layer of a tile as JSON values: name, size of the tile, pairs (operand, memory), and pairs (memory, reserved
    bits).
    """
    names = [memory.name for memory in costs.core.memories]
    reach = [[operand, names[k]] for operand, k in problem.reach]
    return [problem.layer, list(problem.tile), reach, [[names[k], bits] for k, bits in problem.reserved]]


def problem_of(costs: AttentionCosts, row: Sequence[Any]) -> TileLayerProblem | None:
    """Layer of a tile from a row that begins with the values of `problem_row`. The result is None if the attention has
    no layer of this name, or if the core lacks a memory that the row names.
    """
    place = {memory.name: k for k, memory in enumerate(costs.core.memories)}
    layer, size, reach, reserved = row[:4]
    named = {name for _, name in reach} | {name for name, _ in reserved}
    if layer not in costs.attention.templates() or not named <= set(place):
        return None
    return TileLayerProblem(
        layer,
        Tile(*size),
        tuple([(operand, place[name]) for operand, name in reach]),
        tuple([(place[name], bits) for name, bits in reserved]),
    )


def plan_object(costs: AttentionCosts, plan: AttentionPlan) -> dict[str, Any]:
    """Plan as JSON values."""
    names, top = [memory.name for memory in costs.core.memories], costs.memories.top

    def place(one: TensorPlace) -> list[str]:
        return [names[one.memory], WHOLE if one.is_whole else OUTERMOST if one.memory == top else TILE]

    return {
        "tile_units": plan.tile.units,
        "tile_heads": plan.tile.heads,
        "tile_queries": plan.tile.queries,
        "tile_keys": plan.tile.keys,
        "order": plan.order,
        "scores_in": names[plan.scores],
        "queries_in": place(plan.queries),
        "keys_in": place(plan.keys),
        "values_in": place(plan.values),
        "output_in": place(plan.output),
    }


def ledger_object(ledger: Ledger) -> JsonObject:
    """Ledger as JSON values: totals, energy by memory and tensor, and cycles by part of the latency."""
    return {
        ENERGY_PJ: ledger.energy_pj,
        LATENCY_CYCLES: ledger.latency_cycles(),
        "macs": ledger.mac_count,
        "cycles": dict(ledger.cycles),
        "terms_pj": dict(ledger.terms_pj),
        "accesses": ledger.accesses("tensor"),
    }


def optimum_object(found: AttentionOptimum) -> JsonObject:
    """Attention with the best plan, the fused and unfused costs, and the certificate, as JSON values."""
    costs, shape = found.costs, found.costs.attention.shape
    names = [memory.name for memory in costs.core.memories]
    live = () if found.plan is None else costs.program(found.plan).live_bits
    return {
        "name": costs.attention.name,
        "repeats": costs.attention.repeats,
        "shape": encode(shape),
        "plan": None if found.plan is None else plan_object(costs, found.plan),
        "live_bits": {names[k]: bits for k, bits in live},
        "best": ledger_object(found.ledger),
        "unfused": ledger_object(found.unfused),
        "certificate": {
            "objective": costs.options.objective,
            **found.stated(),
            "plans_in_space": found.plans_in_space,
            "sizes": encode(found.sizes),
            "searched": [
                [*problem_row(costs, problem), *(cost or (None, None))] for problem, cost in found.searched.items()
            ],
        },
    }


def row(found: AttentionOptimum, points: AttentionPoints) -> JsonObject:
    """Row of the table of results for one attention."""
    costs, plan = found.costs, found.plan
    shape, told = costs.attention.shape, {} if plan is None else plan_object(costs, plan)
    energy, latency = found.unfused.energy_pj, found.unfused.latency_cycles()
    result: JsonObject = {
        "attention": costs.attention.name,
        "repeats": costs.attention.repeats,
        "units": shape.units,
        "heads": shape.heads,
        "queries": shape.queries,
        "keys": shape.keys,
        "memory": points.memory,
        "memory_bits": points.size_of(costs.core) or "",
        "is_fused": plan is not None,
        ENERGY_PJ: found.ledger.energy_pj,
        LATENCY_CYCLES: found.ledger.latency_cycles(),
        "unfused_energy_pj": energy,
        "unfused_latency_cycles": latency,
        "gap": found.gap,
        "plans_in_space": found.plans_in_space,
        "searched_layers": len(found.searched),
    }
    for name in ("tile_units", "tile_heads", "tile_queries", "tile_keys", "order", "scores_in"):
        result[name] = told.get(name, "")
    for name in ("queries_in", "keys_in", "values_in", "output_in"):
        result[name] = " ".join(told.get(name, ()))
    return result


def table_text(found: Sequence[AttentionOptimum], points: AttentionPoints) -> str:
    """Table of attentions as text for the terminal."""
    width = max(len(_plan_text(one.plan)) for one in found)
    size = f" {points.memory:>14}" if points.memory else ""
    ends = f"{'best':<{width}} {'energy':>11} {'latency':>15} {'of unfused':>16}"
    head = f"{'attention':<28} {'queries':>8} {'keys':>9}{size}  {ends}"
    lines = [head, "─" * len(head)]
    for one in found:
        shape, bits = one.costs.attention.shape, points.size_of(one.costs.core)
        energy = one.ledger.energy_pj / one.unfused.energy_pj
        latency = one.ledger.latency_cycles() / one.unfused.latency_cycles()
        size = "" if bits is None else f" {f'{bits / 8192:,g} KiB':>14}"
        plan, cycles = _plan_text(one.plan), one.ledger.latency_cycles()
        start = f"{one.costs.attention.name:<28} {shape.queries:>8,} {shape.keys:>9,}{size}  {plan:<{width}}"
        costs = f"{energy_text(one.ledger.energy_pj):>11} {cycles:>15,.0f}"
        lines.append(f"{start} {costs} {f'{energy:.1%}, {latency:.1%}':>16}")
    return terminal_lines(lines)


def _plan_text(plan: AttentionPlan | None) -> str:
    if plan is None:
        return "unfused"
    tile = plan.tile
    return f"{_sides(tile)}, {count_of(tile.heads, 'head')} x {count_of(tile.units, 'unit')}, {plan.order}"


def _sides(tile: Tile) -> str:
    """Text with the numbers of queries and keys of a tile."""
    queries = "1 query" if tile.queries == 1 else f"{tile.queries:,} queries"
    return f"{queries} x {count_of(tile.keys, 'key')}"


def why_text(found: AttentionOptimum) -> str:
    """Text on one attention: the best plan, its savings by tensor and memory, and the proof."""
    costs, plan = found.costs, found.plan
    lines = [f"{costs.attention.name}: {'unfused' if plan is None else 'fused'}"]
    if plan is not None:
        told = plan_object(costs, plan)
        lines[0] += (
            f" in tiles of {_sides(plan.tile)}, for {count_of(plan.tile.heads, 'query head')} in each of"
            f" {count_of(plan.tile.units, 'unit')} (a unit is one key head of one request), {plan.order}"
        )
        places = [f"scores in {told['scores_in']}"]
        places += [f"{name} in {' '.join(told[f'{name}_in'])}" for name in ("queries", "keys", "values", "output")]
        lines += ["  " + ", ".join(places), *_saved(found.unfused, found.ledger)]
    counts = f"{count_text(found.plans_in_space, 3)} plans, {len(found.searched):,} layers of tiles searched"
    objective = costs.options.objective
    covers = TilePlans("attention", costs.options.lpf_limit).text
    lines.append("  " + optimum_line(objective, found.is_proven, found.gap, "plans", covers, counts))
    return terminal_lines(lines)


def _saved(unfused: Ledger, fused: Ledger) -> list[str]:
    """Lines that compare unfused and fused execution: energy by tensor and memory, cycles by part of the latency."""
    lines = [f"  {'':<24} {'unfused':>14} {'fused':>14}"]
    keys = {*unfused.memory_pj, *fused.memory_pj}
    for tensor in TENSORS:
        for memory in sorted({memory for memory, one in keys if one == tensor}):
            both = [ledger.memory_pj.get((memory, tensor), 0.0) for ledger in (unfused, fused)]
            lines.append(f"  {f'{tensor}, {memory}':<24} {energy_text(both[0]):>14} {energy_text(both[1]):>14}")
    rest = [sum(ledger.terms_pj.values()) for ledger in (unfused, fused)]
    lines.append(f"  {'array and other terms':<24} {energy_text(rest[0]):>14} {energy_text(rest[1]):>14}")
    for part in dict.fromkeys((*unfused.cycles, *fused.cycles)):
        cycles = unfused.cycles.get(part, 0.0), fused.cycles.get(part, 0.0)
        if any(cycles):
            lines.append(f"  {f'{part}_cycles':<24} {cycles[0]:>14,.0f} {cycles[1]:>14,.0f}")
    return lines
