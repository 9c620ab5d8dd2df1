"""GenerateCNWorkloadHybrid: cuts a network into computation nodes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.fusion.tiling_options import TilingOptions
from tilewright.stages.base import Change, Rest
from tilewright.stages.multi_items import CnProblem
from tilewright.stages.preflight import checked_cn_graph
from tilewright.stages.system_problem import SystemProblem


@dataclass(frozen=True)
class GenerateCNWorkloadHybrid(Change):
    """Cuts every layer into computation nodes (CNs) and finds what flows between them.

    With `cn_define_mode` the hint loops say how (Stream until 2024), without it the tilings of the mapping file and
    layer stacks (Stream of 2025). Everything that is wrong with network, cores and mapping file for that is told at
    once; docs/computation-nodes.md has the rules.

    Example: {set: GenerateCNWorkloadHybrid, parameters: {cn_define_mode: 1, hint_loops: [[OY, all]]}}
    """

    cn_define_mode: int | None = None
    """1: `hint_loops` around every layer; 2: inside of CNs; 3: by groups of layers; 4: as 1, and weights that are too
    large are split; null: the mapping file cuts the layers."""
    hint_loops: list | tuple | dict | None = None  # type: ignore[type-arg]
    """Loops, innermost first: a dimension and a number of tiles or `all`. Mode 3: for each group of layers."""
    layer_cutoffs: tuple[int, ...] = ()
    """Mode 3: ids of the layers at which the next list of hint loops begins."""
    mode: str = TilingOptions.mode
    """fused: layers of a stack are interleaved; lbl: every layer alone in its stack."""
    layer_stacks: tuple[tuple[int, ...], ...] | None = None
    """Ids of the layers of each stack; those in none are alone."""
    stack_cutoffs: tuple[int, ...] = ()
    """Ids of the layers at which stacks end."""
    split_W_percentage: float = TilingOptions.split_w_percentage  # noqa: N815  the name in Stream
    """Mode 4: share of a memory that the weights of a CN may take."""

    takes = SystemProblem
    gives = CnProblem
    stands_for = "GenerateCNWorkloadHybridStage; of 2025 LayerStacksGenerationStage to TiledWorkloadGenerationStage"

    def __post_init__(self) -> None:
        self.options  # noqa: B018  wrong values are told when the stage is made

    @property
    def options(self) -> TilingOptions:
        """The parameters as the library takes them. Raises InputError with all that are wrong."""
        hints: Any = self.hint_loops
        return TilingOptions(
            cn_define_mode=self.cn_define_mode,
            hint_loops=hints,
            layer_cutoffs=self.layer_cutoffs,
            mode=self.mode,
            layer_stacks=self.layer_stacks,
            stack_cutoffs=self.stack_cutoffs,
            split_w_percentage=self.split_W_percentage,
        )

    def change(self, item: SystemProblem, tell: Callable[[Sequence[str]], None] | None = None) -> CnProblem:
        """The network in CNs. Raises InputError with everything that is wrong; `tell` is given notices before that."""
        graph, notices = checked_cn_graph(item, self.options, tell)
        return CnProblem(item, graph, notices=notices)

    def run(self, item: SystemProblem, rest: Rest) -> Iterator[Any]:
        """The results for the network in CNs. Raises InputError with everything that is wrong."""
        yield from rest(self.change(item, rest.control.on_notices))
