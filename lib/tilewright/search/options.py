"""What a search looks for, in which space, and how."""

import math
from dataclasses import dataclass, fields
from typing import Any

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.profile import ModelProfile, profile_by_name

OBJECTIVES = ("latency", "energy", "EDP")
TEMPORAL_MAPPING_TYPES = ("uneven", "even")
SEARCH_ENGINES = ("loma", "salsa", "exact")
ALLOCATIONS = ("greedy", "free")
LARGEST_SEED = 2**63 - 1

_NAMES = {
    "objective": OBJECTIVES,
    "temporal_mapping_type": TEMPORAL_MAPPING_TYPES,
    "temporal_mapping_search_engine": SEARCH_ENGINES,
    "allocation": ALLOCATIONS,
}
_LEAST_COUNTS = {
    "lpf_limit": 1,
    "nb_spatial_mappings_generated": 0,
    "seed": 0,
    "salsa_iteration_number": 1,
    "salsa_restarts": 1,
}
_POSITIVE_NUMBERS = ("time_budget_s", "salsa_start_temperature")
_SWITCHES = ("enable_mix_spatial_mapping", "exploit_data_locality", "workload_data_always_from_top_mem")


@dataclass(frozen=True)
class SearchOptions:
    """Options of one search; the defaults are those of zigzag-dse 3.9.1."""

    objective: str = "latency"
    """What is minimised: latency, energy or EDP (their product)."""
    model: str = "zigzag-3.9.1"
    """Model profile by name."""
    lpf_limit: int | None = 6
    """Loop prime factors that orders are made of, after merging; None means all. Of loma only."""
    temporal_mapping_type: str = "uneven"
    """uneven: each operand has its own level boundaries; even: operands share them."""
    nb_spatial_mappings_generated: int = 3
    """How many generated spatial mappings are tried where the mapping file leaves room; 0 means all."""
    enable_mix_spatial_mapping: bool = False
    """Generate unrollings of several loop dimensions over one array dimension too."""
    temporal_mapping_search_engine: str = "loma"
    """loma: all orders of at most `lpf_limit` loops; salsa: simulated annealing over orders of all prime factors;
    exact: branch and bound over the same orders, with a certificate."""
    allocation: str = "greedy"
    """greedy: loops go to memories as in the reference; free: level boundaries are searched too. Of exact only."""
    time_budget_s: float = 60.0
    """Time after which exact gives the best found, with the gap that remains; for each spatial mapping."""
    seed: int = 0
    """Where the random numbers of salsa start."""
    salsa_iteration_number: int = 1000
    """Neighbours that one chain of salsa looks at."""
    salsa_start_temperature: float = 0.05
    """Relative loss that salsa accepts with probability 1/e at first."""
    salsa_restarts: int = 1
    """Independent chains of salsa; the best of all counts."""
    exploit_data_locality: bool = False
    """Keep data that a next layer uses in the lowest memory that has room for it."""
    workload_data_always_from_top_mem: bool = False
    """With `exploit_data_locality`, let the input of the first and the output of the last layer use the top memory."""

    def __post_init__(self) -> None:
        problems = [problem for field in fields(self) if (problem := _problem(field.name, getattr(self, field.name)))]
        if self.allocation == "free" and self.temporal_mapping_search_engine != "exact":
            problems.append(
                Problem(
                    "only with temporal_mapping_search_engine exact",
                    path="allocation",
                    value=repr(self.allocation),
                    allowed="greedy",
                )
            )
        if self.allocation == "free" and self.temporal_mapping_type == "even":
            problems.append(
                Problem(
                    "free gives each operand level boundaries of its own, which even mappings forbid",
                    path="temporal_mapping_type",
                    value=repr(self.temporal_mapping_type),
                    allowed="uneven",
                )
            )
        try:
            profile_by_name(self.model)
        except InputError as error:
            problems.extend(error.problems)
        if problems:
            raise InputError(problems)

    @property
    def profile(self) -> ModelProfile:
        """The model profile."""
        return profile_by_name(self.model)

    def as_dict(self) -> dict[str, object]:
        """Field -> value, in field order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _problem(name: str, value: Any) -> Problem | None:
    """What is wrong with the value of one option, by itself."""
    if name in _NAMES and value not in _NAMES[name]:
        allowed, nearest = ", ".join(_NAMES[name]), nearest_name(str(value), _NAMES[name])
        return Problem("unknown value", path=name, value=repr(value), allowed=allowed, nearest=nearest)
    if name in _LEAST_COUNTS:
        least = _LEAST_COUNTS[name]
        count = type(value) is int and least <= value <= LARGEST_SEED
        if not count and not (value is None and name == "lpf_limit"):
            return Problem("not a count", path=name, value=repr(value), allowed=f"integers from {least}")
    if name in _POSITIVE_NUMBERS:
        number = type(value) in (int, float) and math.isfinite(value) and value > 0
        if not number:
            return Problem("not a positive number", path=name, value=repr(value), allowed="numbers above 0")
    if name in _SWITCHES and type(value) is not bool:
        return Problem("neither true nor false", path=name, value=repr(value), allowed="true, false")
    return None
