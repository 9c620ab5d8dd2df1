"""What goes down a pipeline of the multi-core flow below the parsers: the network with its cores, its computation
nodes, and what these cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.stages.multi.problem import SystemProblem

if TYPE_CHECKING:
    from tilewright.fusion.graph import CnGraph
    from tilewright.scheduling.core_costs import CoreCostRow

__all__ = ["CnProblem", "CostedCnProblem", "SystemProblem"]


@dataclass(frozen=True, eq=False, repr=False)
class CnProblem:
    """A network cut into computation nodes (CNs), to be costed."""

    descriptions: SystemProblem
    """Network, accelerator and mapping file."""
    graph: "CnGraph"
    """The CNs, and what flows between them."""
    core_files: tuple[str, ...] = ()
    """The core files to be costed; () for all of the accelerator."""
    notices: tuple[str, ...] = ()
    """What is legal but unusual in how the network was cut."""

    @property
    def wanted_core_files(self) -> tuple[str, ...]:
        """The core files to be costed, by name."""
        return self.core_files or tuple(self.descriptions.accelerator.distinct_cores)

    def __repr__(self) -> str:
        return f"<to be costed on {', '.join(self.wanted_core_files)}: {self.graph!r}>"


@dataclass(frozen=True, repr=False)
class CostedCnProblem:
    """A network cut into CNs, with what each of them costs on each core."""

    descriptions: SystemProblem
    """Network, accelerator and mapping file."""
    graph: "CnGraph"
    """The CNs, and what flows between them."""
    costs: "Mapping[str, tuple[CoreCostRow, ...]]"
    """Core file -> a row for each class of CNs that cost the same (`scheduling.cost_classes`)."""
    cost_model: str = ""
    """The model profile of the costs, or the name of a stage of a user's that made them and has none; '' where nobody
    says so."""

    def __repr__(self) -> str:
        return f"<costed on {', '.join(self.costs)}: {self.graph!r}>"
