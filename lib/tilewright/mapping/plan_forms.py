"""Forms of mapping files with a network plan: how each form is recognised, read, and applied to a network."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.base.errors import Problems
from tilewright.base.registry import Registry
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.network_plans import NetworkPlan

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.workload.graph import Workload


class PlanForm(NamedTuple):
    """Form of files with a network plan."""

    has_form: Callable[[Any], bool]
    """Function that returns True if data of a mapping file have this form."""
    read: "Callable[[YamlDocument, Problems], NetworkPlan]"
    """Function that reads a document. The function reports all problems, and raises no error."""
    applied: "Callable[[Mapping, Workload, MultiCoreAccelerator, Problems], Mapping]"
    """Function that replaces the plan of a mapping by entries and stacks for a network on an accelerator. The function
    reports all problems, and raises no error.
    """
    what: str
    """Name of the files in messages."""


FORMS: Registry[PlanForm] = Registry(__name__)


def form_of(data: Any) -> str:
    """Name of the form of network plans in the data of a mapping file; '' if the data are no network plan."""
    return next((name for name in FORMS.names if FORMS[name].has_form(data)), "")


def applied_plan(
    mapping: Mapping, workload: "Workload", accelerator: "MultiCoreAccelerator", problems: Problems
) -> Mapping:
    """Mapping whose network plan is replaced by entries and stacks. A mapping without a plan is returned as it is.

    All problems are reported in `problems`, which must belong to the document of the mapping.
    """
    if mapping.plan is None:
        return mapping
    return FORMS[mapping.plan.form].applied(mapping, workload, accelerator, problems)
