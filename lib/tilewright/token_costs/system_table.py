"""The table of a language model on several cores: each point tensor, data and pipeline parallel, the best of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.cost.rates import time_and_power
from tilewright.errors import InputError, Problem
from tilewright.hardware.static_power import system_clock_period_ns
from tilewright.token_costs.curves import TokenCurves
from tilewright.token_costs.doubled import SIZE, WIDTH
from tilewright.token_costs.pipelines import blocks_of_stage, stage_ends
from tilewright.token_costs.strategies import BEST, DATA, PIPELINE, STRATEGIES
from tilewright.token_costs.system_figures import (
    BEFORE,
    ENERGY,
    FIRST_KIND,
    LATENCY,
    MACS,
    OPERATIONS,
    SystemFigures,
    off_chip_memory,
)
from tilewright.token_costs.table import (
    COMPUTE,
    NOTABLE_GAIN,
    PJ_A_JOULE,
    Capacity,
    TokenCosts,
    capacity_of,
    token_costs_of,
)

Numbers = npt.NDArray[np.float64]
SystemCurves = TokenCurves[SystemFigures]


@dataclass(frozen=True)
class Shared:
    """Work that is shared in one way."""

    strategy: str
    figures: Numbers
    """Of all of it."""
    interval_cycles: float
    """Between the ends of two such works where there are always more of them."""
    stages: tuple[int, ...] = ()
    """Blocks of each stage of a pipeline."""

    @property
    def latency_cycles(self) -> float:
        """Of one."""
        return float(self.figures[LATENCY])


def strategies_of(parallel: str) -> tuple[str, ...]:
    """The strategies that are looked at."""
    return STRATEGIES if parallel == BEST else (parallel,)


def system_token_costs(
    curves: SystemCurves, batches: Sequence[int], contexts: Sequence[int], with_prompts: bool
) -> TokenCosts:
    """The costs at all points, each shared in the way that takes the least time.

    Raises InputError where a batch cannot be shared as wanted, MappingError naming a layer that has no schedule.
    """
    figures = curves.figures
    if figures.strategies == (DATA,) and min(batches) == 1:
        message = "has one request, which data parallel cores cannot share"
        raise InputError([Problem(message, path="--batches", value="1", allowed="batches of 2 or more")])
    curves.search(contexts, batches, contexts if with_prompts else ())
    room = capacity_of(curves, off_chip_memory(figures.schedules.accelerator))
    prompts = {context: _prompt(curves, context) for context in contexts} if with_prompts else {}
    rows = []
    for batch in batches:
        for context in contexts:
            row = room.row(batch, context) | _token(curves, batch, context)
            rows.append(row | prompts.get(context, {}))
    return token_costs_of(curves, figures.schedules.accelerator.name, room, rows, _notes(figures, room))


def shared_ways(figures: SystemFigures, found: Numbers, requests: int) -> list[Shared]:
    """Work with these figures, [way, section, figure], shared in each way that is possible for so many requests."""
    made = []
    for place, way in enumerate(figures.ways):
        if way.strategy != PIPELINE and not (way.strategy == DATA and requests < 2):
            total = found[place].sum(axis=0)
            made.append(Shared(way.strategy, total, float(total[LATENCY])))
    stages = [place for place, way in enumerate(figures.ways) if way.strategy == PIPELINE]
    return [*made, _pipeline(figures, found[stages])] if stages else made


def _pipeline(figures: SystemFigures, found: Numbers) -> Shared:
    """The best pipeline over the cores, [core, section, figure], with the blocks in their order."""
    kinds = list(figures.model.kinds.items())
    place_of = {block: FIRST_KIND + place for place, (block, _) in enumerate(kinds)}
    count_of = {FIRST_KIND + place: count for place, (_, count) in enumerate(kinds)}
    sections = [place_of[block] for block in figures.model.blocks]
    counts = np.array([count_of[section] for section in sections], np.float64)
    own = np.array([figures.loads(found[stage])[:, core] for stage, core in enumerate(figures.stages)])
    ends = stage_ends(own[:, sections] / counts, own[:, BEFORE], own[:, -1])
    total = np.zeros(found.shape[-1])
    for stage in range(len(figures.stages)):
        blocks = list(blocks_of_stage(ends, stage))
        for block in blocks:
            total += found[stage, sections[block]] / counts[block]
    total += found[0, BEFORE] + found[-1, -1]
    loads = figures.loads(total)
    interval = float(loads.max()) or float(total[LATENCY])
    sizes = tuple(len(blocks_of_stage(ends, stage)) for stage in range(len(figures.stages)))
    return Shared(PIPELINE, total, min(interval, float(total[LATENCY])), sizes)


def _token(curves: SystemCurves, batch: int, context: int) -> dict[str, Any]:
    """What is said of one more token for each request of a batch."""
    figures = curves.figures
    ways = shared_ways(figures, curves.next_token(batch, context), batch)
    best = min(ways, key=lambda way: way.latency_cycles)
    energy = float(best.figures[ENERGY])
    row: dict[str, Any] = {
        "parallel": best.strategy,
        "time_per_token_cycles": best.latency_cycles,
        "time_between_steps_cycles": best.interval_cycles,
        "energy_per_token_pj": energy / batch,
        "tokens_per_joule": batch * PJ_A_JOULE / energy,
        "mac_count": int(best.figures[MACS]),
        "operation_count": int(best.figures[OPERATIONS]),
    }
    clock = system_clock_period_ns(figures.schedules.accelerator)
    if clock is not None:
        step, between = (_seconds(clock, cycles) for cycles in (best.latency_cycles, best.interval_cycles))
        row |= {"time_per_token_s": step, "time_between_steps_s": between, "tokens_per_s": batch / between}
    row |= _limit(figures, best)
    return row | {f"{way.strategy}_time_per_token_cycles": way.latency_cycles for way in ways}


def _prompt(curves: SystemCurves, tokens: int) -> dict[str, Any]:
    """What is said of the prompt of one request; its tokens are what data parallel cores share."""
    figures = curves.figures
    best = min(shared_ways(figures, curves.prompt(tokens), tokens), key=lambda way: way.latency_cycles)
    row: dict[str, Any] = {
        "prompt_parallel": best.strategy,
        "time_to_first_token_cycles": best.latency_cycles,
        "prompt_energy_pj": float(best.figures[ENERGY]),
    }
    clock = system_clock_period_ns(figures.schedules.accelerator)
    return row | ({"time_to_first_token_s": _seconds(clock, best.latency_cycles)} if clock is not None else {})


def _seconds(clock_period_ns: float, cycles: float) -> float:
    return time_and_power(clock_period_ns, cycles, 0.0)["latency_s"]


def _limit(figures: SystemFigures, best: Shared) -> dict[str, Any]:
    """What limits a step, and what twice as much of each part would save of the time."""
    cycles = figures.doubled_cycles(best.figures)
    gains = {
        part: max(0.0, 1 - float(one) / best.latency_cycles) for part, one in zip(figures.doubled, cycles, strict=True)
    }
    row: dict[str, Any] = {}
    for kind, name, gain in ((WIDTH, "widest_gain_port", "gain_of_twice_the_width"),
                             (SIZE, "largest_gain_memory", "gain_of_twice_the_size")):  # fmt: skip
        own = {part: one for part, one in gains.items() if part.kind == kind}
        most = max(own, key=lambda part: own[part])
        if kind == WIDTH:
            row["bound_by"] = most.name if own[most] >= NOTABLE_GAIN else COMPUTE
        row |= {name: most.name if own[most] > 0 else "", gain: own[most]}
    return row | {part.column: gain for part, gain in gains.items()}


def _notes(figures: SystemFigures, room: Capacity) -> tuple[str, ...]:
    return tuple(_told(figures, room))


def _told(figures: SystemFigures, room: Capacity) -> Iterator[str]:
    if room.weight_bits > room.memory_bits:
        yield f"the weights do not fit {room.memory}: what they cost is told as if they did"
    if figures.by_inputs:
        names = sorted(name.rpartition("/")[2] for name in figures.by_inputs)
        yield f"tensor parallel, cut along inputs with a sum: {', '.join(dict.fromkeys(names))}"
