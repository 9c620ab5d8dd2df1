"""Model profiles: the reference model to the last bit, or with its known faults repaired, switch by switch.

Each switch repairs one fault of zigzag-dse 3.9.1; all off is the reference. Effects and examples: docs/model.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.parameters import ParameterCheck, Parameters


class ModelProfile(NamedTuple):
    """Which faults of the reference model are repaired. The field order is the order of documentation."""

    name: str = "zigzag-3.9.1"
    skip_first_accumulation_read: bool = False
    """B4: the first accumulation of an output reads no partial sum back, and a spatial reduction none at all."""
    round_up_spatial_factors: bool = False
    """B5: a non-dividing spatial factor counts as its ceiling in the latency analysis, not truncated."""
    independent_spatial_candidates: bool = False
    """B38: what the capacity limit takes from one generated spatial mapping, it takes from no other."""
    exact_temporal_sizes: bool = False
    """B6: temporal loop sizes by exact division, without the extra iteration of a twice rounded quotient."""
    onnx_height_is_y: bool = False
    """B10: ONNX kernel, stride, dilation and padding index 0 is the height, hence Y."""
    trace_onnx_constants: bool = False
    """B13: operands of ONNX layers are traced to their constants instead of counted by predecessors."""
    model_every_operator: bool = False
    """B40: every ONNX operator that computes is a layer, not Conv, Gemm and MatMul alone."""
    exact_window_sizes: bool = False
    """B12: exact count of distinct input positions; only the operand's own sliding windows; tiles rounded up."""
    serial_half_shared_loading: bool = False
    """B16: loading over a port that both inputs share at one end is added up, not overwritten or overlapped, nor left
    out where there is one input alone."""
    consistent_window_union: bool = False
    """B17: the union of transfer windows excludes each link's first window, as the sum of windows does."""
    per_level_loading_floor: bool = False
    """B19: preloading floor by the first tile at each level; required bandwidth without truncation."""
    live_tensor_capacity: bool = False
    """B32: data kept between layers share a memory with all else that is live; each layer's weights decided alone."""
    effective_top_memory_option: bool = False
    """B39: `workload_data_always_from_top_mem` raises the first and last memory level, instead of doing nothing."""
    whole_tiles: bool = False
    """B41: a tile has whole elements of each dimension; what moves adds up to the tensor, in whole words."""
    every_transfer_takes_port_time: bool = False
    """B42: first transfers to the array and read-backs take port time; what is hidden has room on its port."""
    best_double_buffers: bool = False
    """B43: room for second tiles goes where it saves the most stall, not to the operands in order."""
    room_for_final_outputs: bool = False
    """B44: a memory in which outputs are formed has room for them at the wider of their two precisions."""
    wide_until_added: bool = False
    """B47: sums that lanes above a memory still add up leave it as partial sums, not at the width of their result."""
    keep_given_unrolling: bool = False
    """B45: what the user unrolls is cut neither to the width of ports nor to what inner memories hold."""
    ties_by_equation: bool = False
    """B46: of splits that move as many bits the equation decides which is taken, not the order of the hardware file."""
    complete_in_memory_model: bool = False
    """B14: in-memory arrays with several weights a cell, and with outputs of a sliding window side by side, have an
    energy instead of an error, and as many rows as there are inputs."""
    in_memory_active_parts: bool = False
    """B15: of an in-memory array counts what is busy: lanes as they are spread, rows with inputs; and each instance of
    a memory has its area."""


SWITCHES: tuple[str, ...] = tuple(name for name in ModelProfile._fields if name != "name")
REFERENCE = ModelProfile()
CORRECTED = ModelProfile("corrected", *(True for _ in SWITCHES))
PROFILES: dict[str, ModelProfile] = {profile.name: profile for profile in (REFERENCE, CORRECTED)}


def profile_by_name(name: str) -> ModelProfile:
    """The profile called `name`: a profile name, optionally followed by '+switch' or '-switch' terms.

    `zigzag-3.9.1+exact_temporal_sizes` is the reference with one repair. Raises InputError for unknown names.
    """
    for base_name, base in PROFILES.items():
        if name == base_name:
            return base
        if name.startswith(base_name) and name[len(base_name)] in "+-":
            return _with_switches(base, name)
    raise InputError(
        [
            Problem(
                "unknown model profile",
                path="model",
                value=repr(name),
                allowed=", ".join(PROFILES),
                nearest=nearest_name(name, list(PROFILES)),
            )
        ]
    )


def _with_switches(base: ModelProfile, name: str) -> ModelProfile:
    values = {switch: getattr(base, switch) for switch in SWITCHES}
    terms = name[len(base.name) :].replace("-", " -").replace("+", " +").split()
    problems = []
    for term in terms:
        switch = term[1:]
        if switch not in values:
            problems.append(
                Problem(
                    "unknown model switch",
                    path="model",
                    value=repr(switch),
                    allowed=", ".join(SWITCHES),
                    nearest=nearest_name(switch, SWITCHES),
                )
            )
        else:
            values[switch] = term[0] == "+"
    if problems:
        raise InputError(problems)
    return ModelProfile(name, **values)


def switch_values(profile: ModelProfile) -> Iterable[tuple[str, bool]]:
    """(switch, on) pairs in documentation order."""
    return ((switch, getattr(profile, switch)) for switch in SWITCHES)


@dataclass(frozen=True, eq=False, repr=False)
class ModelChoice(Parameters):
    """The cost model."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = REFERENCE.name
    """Model profile: zigzag-3.9.1, corrected, or one of them with switches, such as zigzag-3.9.1+exact_window_sizes."""

    @property
    def profile(self) -> ModelProfile:
        """The model profile."""
        return profile_by_name(self.model)
