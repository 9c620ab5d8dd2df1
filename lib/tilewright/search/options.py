"""What a search looks for, and in which space."""

from dataclasses import dataclass, fields

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.profile import ModelProfile, profile_by_name

OBJECTIVES = ("latency", "energy", "EDP")
TEMPORAL_MAPPING_TYPES = ("uneven", "even")


@dataclass(frozen=True)
class SearchOptions:
    """Options of one search; the defaults are those of zigzag-dse 3.9.1."""

    objective: str = "latency"
    """What is minimised: latency, energy or EDP (their product)."""
    model: str = "zigzag-3.9.1"
    """Model profile by name."""
    lpf_limit: int | None = 6
    """Loop prime factors that orders are made of, after merging; None means all."""
    temporal_mapping_type: str = "uneven"
    """uneven: each operand has its own level boundaries; even: operands share them."""
    nb_spatial_mappings_generated: int = 3
    """How many generated spatial mappings are tried where the mapping file leaves room; 0 means all."""
    enable_mix_spatial_mapping: bool = False
    """Generate unrollings of several loop dimensions over one array dimension too."""

    def __post_init__(self) -> None:
        problems = [
            Problem(
                "unknown value",
                path=name,
                value=repr(value),
                allowed=", ".join(allowed),
                nearest=nearest_name(str(value), allowed),
            )
            for name, value, allowed in (
                ("objective", self.objective, OBJECTIVES),
                ("temporal_mapping_type", self.temporal_mapping_type, TEMPORAL_MAPPING_TYPES),
            )
            if value not in allowed
        ]
        for name, least in (("lpf_limit", 1), ("nb_spatial_mappings_generated", 0)):
            value = getattr(self, name)
            if not (value is None and name == "lpf_limit") and (type(value) is not int or value < least):
                problems.append(Problem("not a count", path=name, value=repr(value), allowed=f"integers from {least}"))
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
