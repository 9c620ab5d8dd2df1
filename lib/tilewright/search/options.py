"""Options of a search: its goal, space and effort, as parameters of the stages that map a layer.

Each class holds the parameters of a stage; the defaults are those of zigzag-dse 3.9.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.base.errors import Problem
from tilewright.base.objectives import Chance, Goal
from tilewright.base.parameters import Count, ParameterCheck, Parameters, PositiveCount, PositiveNumber, parameters_of
from tilewright.base.profile import CORRECTED, ModelChoice, profile_by_name
from tilewright.mapping.words import TemporalMappingType

DEFAULT_SPATIAL_MAPPINGS = 3
"""Number of generated spatial mappings that are tried by default, as in zigzag-dse 3.9.1."""
MOST_STARTS = 64
"""Limit of spatial mappings for which an exact search runs loma and salsa regardless of its time budget."""
SearchEngine = Literal["loma", "salsa", "exact"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SpatialParameters(ModelChoice):
    """Parameters that select the spatial mappings to try."""

    nb_spatial_mappings_generated: Count | None = None
    """Number of generated spatial mappings to try where the mapping file leaves a choice; 0: all; null: 3.

    With null, engine exact tries all, so that the optimum is proven over all of them.
    """
    enable_mix_spatial_mapping: bool = False
    """Whether unrollings of several loop dimensions over one array dimension are generated too."""

    def spatial_count(self, proves: bool) -> int:
        """Number of generated spatial mappings to try, 0 for all; `proves`: the search proves optima."""
        if self.nb_spatial_mappings_generated is not None:
            return self.nb_spatial_mappings_generated
        return 0 if proves else DEFAULT_SPATIAL_MAPPINGS


@dataclass(frozen=True, eq=False, repr=False)
class BoundaryParameters(ModelChoice):
    """Parameters of level boundaries: how operands share memories."""

    temporal_mapping_type: TemporalMappingType = "uneven"
    """uneven: each operand has its own boundaries between memory levels; even: operands share them."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class LomaParameters(Parameters):
    """Parameters of the search over all orders of few loops."""

    lpf_limit: PositiveCount | None = 6
    """Largest number of loop prime factors to permute; more are merged, down to one loop per dimension that iterates.

    null: none are merged.
    """


def loops_of_loma(lpf_limit: int | None) -> str:
    """Description of the loops that loma permutes: the limit counts factors, and dimensions are never merged."""
    if lpf_limit is None:
        return "all loop prime factors"
    return (
        f"the loop prime factors of a layer, merged to at most {lpf_limit} loops, or to one for each loop dimension"
        " that iterates where these are more"
    )


@dataclass(frozen=True, eq=False, repr=False)
class SalsaParameters(Chance, Goal):
    """Parameters of simulated annealing."""

    salsa_iteration_number: PositiveCount = 1000
    """Neighbours that one chain of salsa visits."""
    salsa_start_temperature: PositiveNumber = 0.05
    """Relative loss that salsa accepts with probability 1/e at first."""
    salsa_restarts: PositiveCount = 1
    """Number of independent chains of salsa; the best result of all is used."""


@dataclass(frozen=True, eq=False, repr=False)
class ExactParameters(Goal):
    """Parameters of branch and bound with a certificate."""

    allocation: Literal["greedy", "free"] = "greedy"
    """greedy: loops go to memories as in zigzag-dse; free: exact searches level boundaries too."""
    time_budget_s: PositiveNumber = 60.0
    """Time budget of exact in seconds for each layer, over making, bounding and searching all its spatial mappings.

    After it exact returns the best mapping found, no worse than that of loma and of salsa, with the remaining gap.
    """


PARAMETERS_OF: dict[str, type[Parameters]] = {
    "loma": LomaParameters,
    "salsa": SalsaParameters,
    "exact": ExactParameters,
}
"""Parameters of each search engine."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class LocalityParameters(BoundaryParameters):
    """Parameters of the memories in which data stay between layers."""

    workload_data_always_from_top_mem: bool = False
    """`true`, with `exploit_data_locality`: the input of the first and the output of the last layer use the top memory.
    """


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CoreSearchOptions(SalsaParameters, ExactParameters, LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """Options of the search for the mapping of a layer, or of a computation node, on one core."""

    temporal_mapping_search_engine: SearchEngine = "loma"
    """loma: all orders of the loops that `lpf_limit` leaves; salsa: simulated annealing over orders of all prime
    factors; exact: the optimum of the same orders, certified."""

    def without_effect(self) -> dict[str, str]:
        """Parameters of search engines other than the chosen one, and why each has no effect."""
        own = {parameter.name for parameter in parameters_of(PARAMETERS_OF[self.temporal_mapping_search_engine])}
        others = dict.fromkeys(one.name for kind in PARAMETERS_OF.values() for one in parameters_of(kind))
        why = f"has no effect with temporal_mapping_search_engine {self.temporal_mapping_search_engine}"
        found = {name: why for name in others if name not in own and name != "objective"}
        return super().without_effect() | found

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Options that exclude each other."""
        if self.allocation != "free":
            return
        if self.temporal_mapping_search_engine != "exact" and "temporal_mapping_search_engine" not in wrong:
            message = "only with temporal_mapping_search_engine exact"
            yield Problem(message, path="allocation", value=repr(self.allocation), allowed="greedy")
        if self.temporal_mapping_type == "even":
            message, value = "free gives each operand level boundaries of its own, which even mappings forbid", "'even'"
            yield Problem(message, path="temporal_mapping_type", value=value, allowed="uneven")


@dataclass(frozen=True, eq=False, repr=False)
class SearchOptions(CoreSearchOptions, LocalityParameters):
    """Options of the search for the mappings of a network on one core."""

    exploit_data_locality: bool = False
    """Keep data that a later layer uses in the lowest memory that has room."""

    def without_effect(self) -> dict[str, str]:
        """Options without effect and the reasons:

        options of other engines, and those that need `exploit_data_locality`.
        """
        found = super().without_effect()
        if not self.exploit_data_locality:
            found["workload_data_always_from_top_mem"] = "has no effect without exploit_data_locality"
        return found


@dataclass(frozen=True, eq=False, repr=False)
class CnSearchOptions(CoreSearchOptions):
    """Options of the search for the mappings of computation nodes on each of several cores."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name
