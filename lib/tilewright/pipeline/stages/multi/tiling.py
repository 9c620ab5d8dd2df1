"""Stage GenerateCNWorkloadHybrid, which cuts a network into computation nodes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.base import Change, Rest
from tilewright.pipeline.stages.multi.items import CnProblem, SystemProblem
from tilewright.pipeline.stages.preflight.network import checked_cn_graph


@dataclass(frozen=True)
class GenerateCNWorkloadHybrid(TilingOptions, Change):
    """Cuts every layer into computation nodes (CNs) and finds the data flow between them.

    With `cn_define_mode` the hint loops decide the cuts (Stream until 2024), without it the tilings of the mapping file
    and layer stacks (Stream of 2025). Everything that is wrong with network, cores and mapping file is reported at
    once; docs/multi-core-model.md#computation-nodes has the rules.

    Example: {set: GenerateCNWorkloadHybrid, parameters: {cn_define_mode: 1, hint_loops: [[OY, all]]}}
    """

    takes = SystemProblem
    gives = CnProblem
    stands_for = "GenerateCNWorkloadHybridStage; of 2025 LayerStacksGenerationStage to TiledWorkloadGenerationStage"

    def change(self, item: SystemProblem, tell: Callable[[Sequence[str]], None] | None = None) -> CnProblem:
        """Network in CNs. Raises InputError with everything that is wrong; `tell` gets notices before that."""
        graph, notices = checked_cn_graph(item, self, tell)
        return CnProblem(item, graph, notices=notices)

    def run(self, item: SystemProblem, rest: Rest) -> Iterator[Any]:
        """Yield the results for the network in CNs. Raises InputError with everything that is wrong."""
        yield from rest(self.change(item, rest.control.on_notices))
