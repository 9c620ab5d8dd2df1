"""Network plans: mapping files of other tools that cut, place and fuse the layers of one network.

The entries of such a file depend on the network: they name loops by position, and they give the sizes of tiles that
several layers share. A mapping keeps the content of the file as a `NetworkPlan`. As soon as the network and the cores
are known, `applied_plan` replaces it by ordinary entries and by stacks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.base.errors import Problems
from tilewright.base.registry import Registry

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.mapping.constraints import Mapping
    from tilewright.workload.graph import Workload


@dataclass(frozen=True)
class PlanSplit:
    """Cut of a layer into parts for different cores."""

    dimension: int
    """Position of the loop in the order of the tool that the file is for."""
    parts: int


@dataclass(frozen=True)
class PlanLayer:
    """Cores and parts of the layers that a name selects."""

    name: str
    """Name of a layer, or type of operators."""
    cores: tuple[int, ...]
    splits: tuple[PlanSplit, ...] = ()
    """Cuts into parts, as written. The last cut changes fastest from core to core."""


@dataclass(frozen=True)
class PlanTile:
    """Tile of a group of fused layers, given for a loop of one of them."""

    layer: str
    dimension: int
    """Position of the loop in the order of the tool that the file is for."""
    size: int
    """Indices of the loop that one core computes before the next tile begins."""


@dataclass(frozen=True)
class PlanGroup:
    """Group of fused layers."""

    name: str
    layers: tuple[str, ...]
    tiles: tuple[PlanTile, ...] = ()
    """Tiles, innermost loop first."""


@dataclass(frozen=True)
class NetworkPlan:
    """Content of a mapping file that cuts, places and fuses the layers of one network."""

    form: str
    """Name of the form of the file, in FORMS."""
    layers: tuple[PlanLayer, ...]
    groups: tuple[PlanGroup, ...] = ()


class PlanForm(NamedTuple):
    """Form of files with a network plan."""

    has_form: Callable[[Any], bool]
    """Function that returns True if data of a mapping file have this form."""
    read: "Callable[[YamlDocument, Problems], NetworkPlan]"
    """Function that reads a document. It reports all problems, and raises no error."""
    applied: "Callable[[Mapping, Workload, MultiCoreAccelerator, Problems], Mapping]"
    """Function that replaces the plan of a mapping by entries and stacks for a network on an accelerator. It reports
    all problems, and raises no error.
    """
    what: str
    """Name of the files in messages."""


FORMS: Registry[PlanForm] = Registry(__name__)


def form_of(data: Any) -> str:
    """Name of the form of network plans that the data of a mapping file have; '' if the data are no network plan."""
    return next((name for name in FORMS.names if FORMS[name].has_form(data)), "")


def applied_plan(
    mapping: "Mapping", workload: "Workload", accelerator: "MultiCoreAccelerator", problems: Problems
) -> "Mapping":
    """Mapping whose network plan is replaced by entries and stacks. A mapping without a plan is returned as it is.

    All problems are reported in `problems`, which must belong to the document of the mapping.
    """
    if mapping.plan is None:
        return mapping
    return FORMS[mapping.plan.form].applied(mapping, workload, accelerator, problems)
