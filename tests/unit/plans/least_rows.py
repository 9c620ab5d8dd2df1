"""Cost rows that no real mapping beats: each tile takes only its least work.

Plans with such rows come near the bounds, and need no search of mappings.
"""

import math
import random
from collections.abc import Iterator, MutableMapping
from typing import Any

from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.hardware.core import Core
from tilewright.multicore.scheduling.core_costs import CoreCostRow, Stream
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.tiling_bounds.core_work import layer_work


class LeastRows(MutableMapping[Any, CoreCostRow]):
    """Cost rows by the keys of `map_core`.

    Some operands of some rows stream. Their bits, at both ends of the way, are those that a copy would move.
    """

    def __init__(self, problem: SystemProblem, model: str, runtime: str, seed: int) -> None:
        self.problem, self.is_corrected, self.runtime = problem, profile_by_name(model) == CORRECTED, runtime
        self.seed, self.share = seed, random.Random(seed).choice((0.0, 0.0, 0.3))
        self.rows: dict[Any, CoreCostRow] = {}

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: Any) -> CoreCostRow:
        if key not in self.rows:
            self.rows[key] = self._row(key)
        return self.rows[key]

    def __setitem__(self, key: Any, row: CoreCostRow) -> None:
        raise AssertionError("every row is known")

    def __delitem__(self, key: Any) -> None:
        raise AssertionError("rows stay")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _row(self, key: Any) -> CoreCostRow:
        file_name, layer, entry, steps, needs, _ = key
        core = self.problem.accelerator.distinct_cores[file_name]
        own = layer_work(layer, entry, core, self.is_corrected, self.runtime != "total0", frozenset())
        cycles = max(1, math.ceil(own.cycles * (1 - 1e-9)))
        draw = random.Random(repr((self.seed, file_name, layer.loop_sizes, steps)))
        streams, energy = [], own.energy_pj
        for operand, bits in needs:
            name = dict(entry.memory_operand_links).get(operand)
            if name is not None and operand in layer.operands and bits and draw.random() < self.share:
                streams.append(Stream(name, bits, max(1, -(-bits // cycles))))
                energy += bits * _pj_per_bit(core, name)
        return CoreCostRow(0, "", cycles, cycles, cycles, cycles, energy, energy, streams=tuple(streams))


def _pj_per_bit(core: Core, operand: str) -> float:
    """Energy for a bit of an operand at its top memory, through the narrowest port."""
    memory = [one for one in core.memories if operand in one.operands][-1]
    width = min(port.bandwidth_max_bits for port in memory.ports)
    return max(memory.read_energy_pj, memory.write_energy_pj) / width
