"""Options of a search: its goal, space and effort, as parameters of the stages that map a layer.

Each class holds the parameters of a stage; the defaults are those of zigzag-dse 3.9.1. `MapOptions`, the options of
`tilewright map`, has defaults of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from tilewright.base.errors import Problem
from tilewright.base.objectives import Chance, Goal, Objective
from tilewright.base.parameters import (
    Count,
    Limits,
    ParameterCheck,
    Parameters,
    PositiveCount,
    PositiveNumber,
    parameters_of,
)
from tilewright.base.profile import CORRECTED, ModelChoice, profile_by_name
from tilewright.mapping.words import TemporalMappingType

DEFAULT_SPATIAL_MAPPINGS = 3
"""Number of generated spatial mappings that are tried by default, as in zigzag-dse 3.9.1."""
MOST_STARTS = 64
"""Limit of spatial mappings for which an exact search runs loma and salsa regardless of its time budget."""
SearchEngine = Literal["loma", "salsa", "exact", "best"]
ZIGZAG = "zigzag"
"""Preset with the numbers of zigzag-dse 3.9.1."""
EXACT_TIME_BUDGET_S = 60.0
"""Time budget of the exact search in seconds, unless another one is given."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SpatialParameters(ModelChoice):
    """Parameters that select the spatial mappings to try."""

    nb_spatial_mappings_generated: Count | None = None
    """Number of generated spatial mappings to try where the mapping file leaves a choice; 0: all; null: 3.

    With null, engines exact and best try all, so that the bound is over all of them.
    """
    enable_mix_spatial_mapping: bool = False
    """Whether unrollings of several loop dimensions over one array dimension are generated too."""

    def spatial_count(self, bounds: bool) -> int:
        """Number of generated spatial mappings to try, 0 for all; `bounds`: the search gives a lower bound."""
        if self.nb_spatial_mappings_generated is not None:
            return self.nb_spatial_mappings_generated
        return 0 if bounds else DEFAULT_SPATIAL_MAPPINGS


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
    """greedy: loops go to memories as in zigzag-dse; free: exact and best search level boundaries too."""
    time_budget_s: PositiveNumber | None = None
    """Time budget in seconds for each layer, for generating, bounding and searching all its spatial mappings.

    null: 60 for exact, no limit for best.

    When the time is over, the best mapping found is used, with its gap. It is no worse than those of loma and salsa.
    """

    @property
    def engine(self) -> SearchEngine:
        """Name of the engine, for certificates."""
        return "exact"

    @property
    def limits(self) -> "SearchLimits":
        """Limits of the exact search."""
        return SearchLimits(0.0, None, self.time_budget_s or EXACT_TIME_BUDGET_S)


class SearchLimits(NamedTuple):
    """Limits that end a search with a lower bound before the optimum is proven."""

    largest_gap: float
    """Share of the best value by which the optimum may be smaller; 0: it must be proven."""
    effort: int | None
    """Number of labels, points of tables and spatial mappings, weighted; None: no limit."""
    time_budget_s: float | None
    """Time in seconds; None: no limit."""


@dataclass(frozen=True, eq=False, repr=False)
class BestParameters(ExactParameters):
    """Parameters of the search that ends with a small gap."""

    largest_gap: Annotated[float, Limits(least=0, most=1)] = 0.01
    """best ends a layer once its lower bound is at most this share below the mapping found."""
    effort: Count | None = 1_000_000
    """Limit of the work of best for each layer, beyond that of loma and salsa; null: no limit.

    It counts labels of partial loop orders, points of tables, and 3,000 for a spatial mapping, so that results do not
    depend on the machine.
    """

    ends: bool = True
    """Whether best also searches the least energy and the least latency of each layer if the objective has both.

    They bound the objective of the network, and show its trade-off between energy and latency.
    """

    @property
    def engine(self) -> SearchEngine:
        """Name of the engine, for certificates."""
        return "best"

    @property
    def limits(self) -> SearchLimits:
        """Limits of the search."""
        return SearchLimits(self.largest_gap, self.effort, self.time_budget_s)


PARAMETERS_OF: dict[str, type[Parameters]] = {
    "loma": LomaParameters,
    "salsa": SalsaParameters,
    "exact": ExactParameters,
    "best": BestParameters,
}
"""Parameters of each search engine."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class LocalityParameters(BoundaryParameters):
    """Parameters of the memories in which data stay between layers."""

    workload_data_always_from_top_mem: bool = False
    """`true`, with `exploit_data_locality`: the input of the first and the output of the last layer use the top memory.
    """


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CoreSearchOptions(SalsaParameters, BestParameters, LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """Options of the search for the mapping of a layer, or of a computation node, on one core."""

    temporal_mapping_search_engine: SearchEngine = "loma"
    """loma: all orders of the loops that `lpf_limit` leaves; salsa: simulated annealing over orders of all prime
    factors; exact: the optimum of the same orders, certified; best: loma, salsa, then exact until `largest_gap` or
    `effort`."""

    @property
    def of_bounds(self) -> ExactParameters | None:
        """Parameters of the chosen engine if it gives a lower bound; else None."""
        kind = PARAMETERS_OF[self.temporal_mapping_search_engine]
        return self.part(kind) if issubclass(kind, ExactParameters) else None

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
        if "temporal_mapping_search_engine" not in wrong and self.of_bounds is None:
            message = "only with temporal_mapping_search_engine exact or best"
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


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MapOptions(SearchOptions):
    """Options of `tilewright map`, with defaults for results to decide by, and a preset for those of zigzag-dse."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name
    objective: Objective = "EDP"
    temporal_mapping_search_engine: SearchEngine = "best"
    exploit_data_locality: bool = True
    preset: Literal["best", "zigzag"] | None = None
    """Values of the options that are not given. best: to decide by; the defaults of this table. zigzag: to compare with
    zigzag-dse 3.9.1; model zigzag-3.9.1, objective latency, search engine loma, and layers that begin and end in the
    top memory. null: best, and with a pipeline of stages zigzag, since stages are those of zigzag-dse.
    """

    def __init__(self, **given: Any) -> None:
        values = {parameter.name: parameter.default for parameter in parameters_of(MapOptions)}
        values = {**values, **self.implied(given), **given}
        object.__setattr__(self, "preset", values.pop("preset"))
        super().__init__(**values)

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values that the preset of the given ones gives to other options."""
        if given.get("preset") != ZIGZAG:
            return {}
        own = {parameter.name for parameter in parameters_of(cls) if parameter.owner is MapOptions}
        return {one.name: one.default for one in parameters_of(SearchOptions) if one.name in own}


@dataclass(frozen=True, eq=False, repr=False)
class EvaluateOptions(BoundaryParameters):
    """Options of `tilewright evaluate`, with the default model of `tilewright map`."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = MapOptions.model


@dataclass(frozen=True, eq=False, repr=False)
class CnSearchOptions(CoreSearchOptions):
    """Options of the search for the mappings of computation nodes on each of several cores."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name
    ends: bool = False
