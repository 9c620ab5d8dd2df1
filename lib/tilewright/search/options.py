"""Options of a search (goal, space and effort), as parameters of the stages that map a layer.

Each class holds the parameters of a stage, with the defaults of zigzag-dse 3.9.1. `MapOptions` holds the options of
`tilewright map`, with defaults of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args

from tilewright.base.errors import Problem
from tilewright.base.objectives import OBJECTIVES, Chance, Goal, Objective
from tilewright.base.parameters import (
    Count,
    Limits,
    ParameterCheck,
    Parameters,
    PositiveCount,
    PositiveNumber,
    Told,
    parameters_of,
)
from tilewright.base.profile import CORRECTED, ModelChoice, profile_by_name
from tilewright.base.units import budget_pj, checked, share_of_percent
from tilewright.mapping.words import TemporalMappingType

DEFAULT_SPATIAL_MAPPINGS = 3
"""Number of generated spatial mappings that are tried by default, as in zigzag-dse 3.9.1."""
MOST_STARTS = 64
"""Largest number of spatial mappings for which an exact search runs loma and salsa even if the time budget is over."""
SearchEngine = Literal["loma", "salsa", "exact", "best"]
MachineClass = Literal["host-driven-array", "sequenced-array", "many-core", "row-stationary", "any"]
"""Classes of machines for which prediction errors are known (`results.error_bars`)."""
MACHINE_CLASSES: tuple[str, ...] = get_args(MachineClass)
"""Names of the classes of machines."""
MACHINES: Mapping[str, str] = {
    "host-driven-array": "one array to which a host or driver sends each command, such as Gemmini",
    "sequenced-array": "one large array with a program of a compiler, such as a TPU",
    "many-core": "many cores with arrays of their own that work on one layer, such as Tenstorrent and AMD XDNA",
    "row-stationary": "one array with the row-stationary dataflow, such as Eyeriss",
    "any": "all machines with measurements, if none of the other classes fits",
}
"""Classes of machines: name -> the machines of the class, in words. Options for error bars take these names."""
MACHINES_TEXT = " ".join(f"{name}: {words}." for name, words in MACHINES.items())
"""Sentences on the machines of each class, for the help of options."""
CHOICES = ("latency_slack", "energy_slack", "deadline_ms", "energy_budget")
"""Options that choose a point of the Pareto front of a network."""
SLACK = Told(allowed="a percentage of 0% or more, such as 2%")
"""Text of the allowed values of a slack, for messages on wrong values such as a number without a percent sign."""
BUDGET = Told(allowed="a number above 0 with a unit, such as 3 mJ")
"""Text of the allowed values of an energy budget, for messages on wrong values such as a number without a unit."""
ZIGZAG = "zigzag"
"""Name of the preset that sets the options to the values of zigzag-dse 3.9.1."""
EXACT_TIME_BUDGET_S = 60.0
"""Default time budget of the exact search in seconds."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SpatialParameters(ModelChoice):
    """Parameters that select the spatial mappings to try."""

    nb_spatial_mappings_generated: Count | None = None
    """Number of generated spatial mappings to try for layers whose spatial mapping the mapping file does not fix.

    0: all. null: 3 with the engines loma and salsa; all with the engines exact and best, so that their lower bound
    holds for all spatial mappings.
    """
    enable_mix_spatial_mapping: bool = False
    """True if the generated spatial mappings may unroll several loop dimensions over one array dimension."""

    def spatial_count(self, bounds: bool) -> int:
        """Number of generated spatial mappings to try; 0: all of them. `bounds` is true if the search gives a lower
        bound.
        """
        if self.nb_spatial_mappings_generated is not None:
            return self.nb_spatial_mappings_generated
        return 0 if bounds else DEFAULT_SPATIAL_MAPPINGS


@dataclass(frozen=True, eq=False, repr=False)
class BoundaryParameters(ModelChoice):
    """Parameters of level boundaries: how operands share memories."""

    temporal_mapping_type: TemporalMappingType = "uneven"
    """uneven: the boundaries between memory levels can differ between operands; even: all operands share the
    boundaries."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class LomaParameters(Parameters):
    """Parameters of the search over all orders of few loops."""

    lpf_limit: PositiveCount | None = 6
    """Largest number of loop prime factors to permute; null: no limit.

    If a layer has more factors, factors of the same dimension are merged until this number is reached or each dimension
    has one loop.
    """


def loops_of_loma(lpf_limit: int | None) -> str:
    """Text that describes the loops that loma permutes. Factors of different dimensions are never merged."""
    if lpf_limit is None:
        return "all loop prime factors"
    return (
        f"the loop prime factors of a layer, merged until at most {lpf_limit} loops are left (or one loop for each loop"
        " dimension, if there are more dimensions)"
    )


@dataclass(frozen=True, eq=False, repr=False)
class SalsaParameters(Chance, Goal):
    """Parameters of simulated annealing."""

    salsa_iteration_number: PositiveCount = 1000
    """Number of neighbours that one chain of salsa visits."""
    salsa_start_temperature: PositiveNumber = 0.05
    """Start temperature of salsa. At the start, a change that makes the objective worse by this fraction is accepted
    with probability 1/e."""
    salsa_restarts: PositiveCount = 1
    """Number of independent chains of salsa; the best result of all chains is used."""


@dataclass(frozen=True, eq=False, repr=False)
class ExactParameters(Goal):
    """Parameters of the exact search: branch and bound with a certificate."""

    allocation: Literal["greedy", "free"] = "greedy"
    """greedy: loops are allocated to memories as in zigzag-dse; free: the engines exact and best also search the level
    boundaries."""
    time_budget_s: PositiveNumber | None = None
    """Time budget in seconds for each layer. The time includes generating, bounding and searching all spatial mappings
    of the layer.

    null: 60 seconds for exact, no limit for best.

    When the time is over, the best mapping found is used, and the gap to the lower bound is reported. This mapping is
    at least as good as the mappings of loma and salsa.
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
    """Limits at which a search with a lower bound ends before the optimum is proven."""

    largest_gap: float
    """Largest accepted gap: (best value found - lower bound) / best value found. 0: the optimum must be proven."""
    effort: int | None
    """Largest effort: a weighted count of partial loop orders, table entries and spatial mappings; None: no limit."""
    time_budget_s: float | None
    """Time budget in seconds; None: no limit."""


@dataclass(frozen=True, eq=False, repr=False)
class BestParameters(ExactParameters):
    """Parameters of the engine `best`: an exact search that ends as soon as the gap is small enough."""

    largest_gap: Annotated[float, Limits(least=0, most=1)] = 0.01
    """Largest gap at which the engine `best` ends the search of a layer, as a share of the value of the mapping found.

    The gap is the difference between this value and the lower bound.
    """
    effort: Count | None = 1_000_000
    """Limit of the work of the engine `best` for each layer, in addition to loma and salsa; null: no limit.

    The limit counts the partial loop orders that are visited, the table entries that are computed, the neighbours in
    further annealing, and 3,000 for each spatial mapping. The limit does not count seconds, so that results do not
    depend on the machine. A first look at all spatial mappings may take three times the limit.
    """

    ends: bool = True
    """True if the engine `best` also searches for the least energy and for the least latency of each layer.

    These two searches run only if the objective contains both energy and latency. The two minima give a lower bound of
    the objective of the network, and show the trade-off between energy and latency.
    """

    front: bool = False
    """True if the engine `best` also searches for the Pareto front of energy and latency of each layer, with proven
    bounds.

    The summary of a run then also has the Pareto front of the network.
    """

    near_optimum: Annotated[float, Limits(least=0, most=0.1)] = 0.0
    """Loss of the objective (energy or latency) that the engine `best` accepts for each layer, as a share of the least
    value found; 0: no loss. With objective energy, the engine takes the mapping with the least latency among the
    mappings found within this loss. With objective latency, the engine takes the mapping with the least energy."""

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
    """Parameters that decide in which memories data stay between layers."""

    workload_data_always_from_top_mem: bool = False
    """True if the input of the first layer and the output of the last layer always lie in the top memory. The option
    has an effect only with `exploit_data_locality`."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CoreSearchOptions(SalsaParameters, BestParameters, LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """Options of the search for the mapping of a layer, or of a computation node, on one core."""

    temporal_mapping_search_engine: SearchEngine = "loma"
    """Search engine. loma: tries all orders of the loops, after factors are merged until `lpf_limit` loops are left.
    salsa: searches the orders of all prime factors by simulated annealing. exact: finds the optimum over the orders of
    all prime factors, with a certificate. best: runs loma, then salsa, then exact until `largest_gap` or `effort` is
    reached."""

    @property
    def of_bounds(self) -> ExactParameters | None:
        """Parameters of the chosen engine if this engine computes a lower bound; else None."""
        kind = PARAMETERS_OF[self.temporal_mapping_search_engine]
        return self.part(kind) if issubclass(kind, ExactParameters) else None

    def without_effect(self) -> dict[str, str]:
        """Reasons why parameters have no effect, by name of the parameter. Two groups have no effect: parameters of
        engines that are not chosen, and `near_optimum` if the objective contains both energy and latency.
        """
        own = {parameter.name for parameter in parameters_of(PARAMETERS_OF[self.temporal_mapping_search_engine])}
        others = dict.fromkeys(one.name for kind in PARAMETERS_OF.values() for one in parameters_of(kind))
        why = f"has no effect with temporal_mapping_search_engine {self.temporal_mapping_search_engine}"
        found = {name: why for name in others if name not in own and name != "objective"}
        if "near_optimum" not in found and all(OBJECTIVES[self.objective]):
            found["near_optimum"] = (
                f"has no effect with `objective: {self.objective}`, which contains energy and latency"
            )
        return super().without_effect() | found

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Problems of options that exclude each other. `wrong` has the names of options whose values are already
        reported as wrong.
        """
        if self.allocation != "free":
            return
        if "temporal_mapping_search_engine" not in wrong and self.of_bounds is None:
            message = "is possible only with temporal_mapping_search_engine exact or best"
            yield Problem(message, path="allocation", value=repr(self.allocation), allowed="greedy")
        if self.temporal_mapping_type == "even":
            message = (
                "with `allocation: free`, each operand has its own level boundaries; in an even mapping, all operands"
                " have the same level boundaries"
            )
            yield Problem(message, path="temporal_mapping_type", value="'even'", allowed="uneven")


@dataclass(frozen=True, eq=False, repr=False)
class SearchOptions(CoreSearchOptions, LocalityParameters):
    """Options of the search for the mappings of a network on one core."""

    exploit_data_locality: bool = False
    """True if data that a later layer uses stay in the lowest memory that has room for these data."""
    bounds: bool = False
    """True if the engines loma and salsa also compute a lower bound of the objective of each layer and of the network.

    The bound holds for all loop orders of the spatial mappings that the engine tries. The mapping found stays the same.
    The engines exact and best always give a bound.
    """

    def without_effect(self) -> dict[str, str]:
        """Reasons why options have no effect, by name of the option. There are three kinds of options without effect:

        * the parameters that `CoreSearchOptions.without_effect` gives;
        * `bounds`, if the engine always gives a bound;
        * `workload_data_always_from_top_mem`, if `exploit_data_locality` is off.
        """
        found = super().without_effect()
        if not self.exploit_data_locality:
            found["workload_data_always_from_top_mem"] = "has no effect without exploit_data_locality"
        if self.of_bounds is not None:
            engine = self.temporal_mapping_search_engine
            found["bounds"] = f"has no effect with temporal_mapping_search_engine {engine}, which always gives a bound"
        return found


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MapOptions(SearchOptions):
    """Options of `tilewright map`. The defaults are for design decisions; a preset has the values of zigzag-dse."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name
    objective: Objective = "EDP"
    temporal_mapping_search_engine: SearchEngine = "best"
    exploit_data_locality: bool = True
    bounds: bool = True
    near_optimum: Annotated[float, Limits(least=0, most=0.1)] = 0.001
    preset: Literal["best", "zigzag"] | None = None
    """Values for the options that are not given. best: the defaults of this table, for design decisions. zigzag: the
    values of zigzag-dse 3.9.1, for comparisons (model zigzag-3.9.1, objective latency, search engine loma, and layers
    that begin and end in the top memory). null: zigzag if a pipeline of stages is given, because the stages come from
    zigzag-dse; otherwise best."""

    latency_slack: Annotated[str, SLACK, ParameterCheck(checked("latency_slack", share_of_percent))] | None = None
    """Choose a point of the network's Pareto front. Among the points whose latency is at most this share (such as
    2%) above the least latency of the front, the point with the least energy is taken. This option implies `front`."""
    energy_slack: Annotated[str, SLACK, ParameterCheck(checked("energy_slack", share_of_percent))] | None = None
    """Choose a point of the network's Pareto front. Among the points whose energy is at most this share (such as 2%)
    above the least energy of the front, the point with the least latency is taken. This option implies `front`."""
    deadline_ms: PositiveNumber | None = None
    """Choose a point of the network's Pareto front. Among the points whose latency is at most this time in ms, the
    point with the least energy is taken. This option implies `front`, and needs a clock in the hardware file."""
    energy_budget: Annotated[str, BUDGET, ParameterCheck(checked("energy_budget", budget_pj))] | None = None
    """Choose a point of the network's Pareto front. Among the points whose energy is at most this energy (such as
    3 mJ), the point with the least latency is taken. This option implies `front`."""
    error_bars: MachineClass | None = None
    """Class of the machine, for error bars on the latency. The error bars come from prediction errors for this class,
    relative to measurements by others. host-driven-array: one array to which a host or driver sends each command, such
    as Gemmini. sequenced-array: one large array with a program of a compiler, such as a TPU. many-core: many cores with
    arrays of their own that work on one layer, such as Tenstorrent and AMD XDNA. row-stationary: one array with the
    row-stationary dataflow, such as Eyeriss. any: all machines with measurements, if none of the other classes fits.
    null: no error bars. The mappings stay the same."""

    def __init__(self, **given: Any) -> None:
        values = {parameter.name: parameter.default for parameter in parameters_of(MapOptions)}
        values = {**values, **self.implied(given), **given}
        for name in ("preset", *CHOICES, "error_bars"):
            object.__setattr__(self, name, values.pop(name))
        super().__init__(**values)

    @property
    def choice(self) -> dict[str, float | str]:
        """Options of CHOICES that are set, as a table from name to value. Each option of CHOICES chooses a point of the
        Pareto front.
        """
        return {name: getattr(self, name) for name in CHOICES if getattr(self, name) is not None}

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Problems of options that exclude each other. `wrong` has the names of options whose values are already
        reported as wrong.
        """
        yield from super().conflicts(wrong)
        if self.error_bars is not None and not {"error_bars", "model"} & wrong and self.model != CORRECTED.name:
            message = f"needs the model {CORRECTED.name}: the errors of the model {self.model} are not measured"
            yield Problem(message, path="error_bars", value=self.error_bars)
        names = [name for name in self.choice if name not in wrong]
        for name in names[1:]:
            message = f"{names[0]} and {name} each choose a point of the front: give only one of them"
            yield Problem(message, path=name, value=str(self.choice[name]))
        for name in names[:1]:
            if "temporal_mapping_search_engine" not in wrong and self.temporal_mapping_search_engine != "best":
                message = (
                    "chooses a point of the Pareto front, which only `temporal_mapping_search_engine: best` searches"
                )
                yield Problem(message, path=name, value=str(self.choice[name]))
            if not self.front and "front" not in wrong:
                yield Problem(
                    "chooses a point of the Pareto front, so `front` must be true", path="front", value="false"
                )

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values of other options that the options in `given` imply. A preset, an engine, or an option that chooses a
        point of the Pareto front can imply values.
        """
        chosen: dict[str, Any] = {"front": True} if any(given.get(name) is not None for name in CHOICES) else {}
        if given.get("temporal_mapping_search_engine", "best") != "best":
            chosen["near_optimum"] = 0.0  # so that the recorded options do not depend on how the engine was chosen
        if given.get("preset") != ZIGZAG:
            return chosen
        own = {parameter.name for parameter in parameters_of(cls) if parameter.owner is MapOptions}
        return {one.name: one.default for one in parameters_of(SearchOptions) if one.name in own} | chosen


@dataclass(frozen=True, eq=False, repr=False)
class TokenOptions(SearchOptions):
    """Options of `tilewright tokens` on one core. If `bounds` is true, the command also reports how far its mappings
    can be from the optimum."""

    bounds: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class EvaluateOptions(BoundaryParameters):
    """Options of `tilewright evaluate`, with the default model of `tilewright map`."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = MapOptions.model


@dataclass(frozen=True, eq=False, repr=False)
class CnSearchOptions(CoreSearchOptions):
    """Options of the search for the mappings of computation nodes on each of several cores."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name
    ends: bool = False
