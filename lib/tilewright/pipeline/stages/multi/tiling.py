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
    """Cuts every layer into computation nodes (CNs), and finds the data flow between the CNs.

    With `cn_define_mode`, the hint loops decide how layers are cut (as in Stream until 2024). Without
    `cn_define_mode`, the tilings of the mapping file and the layer stacks decide (as in Stream of 2025). All errors of
    network, cores and mapping file are reported at once. docs/multi-core-model/computation-nodes.md explains the rules.

    Example: {set: GenerateCNWorkloadHybrid, parameters: {cn_define_mode: 1, hint_loops: [[OY, all]]}}
    """

    takes = SystemProblem
    gives = CnProblem
    stands_for = "GenerateCNWorkloadHybridStage; in 2025: LayerStacksGenerationStage to TiledWorkloadGenerationStage"

    def change(self, item: SystemProblem, tell: Callable[[Sequence[str]], None] | None = None) -> CnProblem:
        """Network cut into CNs. Raises InputError with all errors. If `preflight` finds errors, the function `tell`
        gets all notices before the error is raised.
        """
        graph, notices = checked_cn_graph(item, self, tell)
        return CnProblem(item, graph, notices=notices)

    def run(self, item: SystemProblem, rest: Rest) -> Iterator[Any]:
        """Yield the results for the network cut into CNs. Raises InputError with all errors."""
        yield from rest(self.change(item, rest.control.on_notices))
