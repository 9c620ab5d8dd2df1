"""Model profiles: each profile repairs a set of known faults of the reference model (zigzag-dse 3.9.1).

Each switch of a profile repairs one fault. With all switches off, the model is bit-identical to zigzag-dse
3.9.1. B4, B5 and so on are the numbers of the faults. docs/model.md describes the effects of the switches, with
examples.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.parameters import ParameterCheck, Parameters


class ModelProfile(NamedTuple):
    """Name and switches of a model. Each switch repairs one fault of the reference model.

    The fields have the same order as the switches in docs/model.md.
    """

    name: str = "zigzag-3.9.1"
    skip_first_accumulation_read: bool = False
    """B4: the first accumulation of an output reads no partial sum back. If the whole reduction is spatial, no partial
    sum is ever read back."""
    round_up_spatial_factors: bool = False
    """B5: the latency analysis rounds up a spatial factor that does not divide its loop. The reference truncates such a
    factor."""
    independent_spatial_candidates: bool = False
    """B38: each generated spatial mapping is limited separately. In the reference, a small memory that limits one
    spatial mapping can change the others."""
    exact_temporal_sizes: bool = False
    """B6: temporal loop sizes follow from an exact division; the reference rounds twice, which can add an iteration."""
    onnx_height_is_y: bool = False
    """B10: index 0 of the kernel, stride, dilation and padding of an ONNX node is the height. The height is Y; the
    reference takes it as X."""
    trace_onnx_constants: bool = False
    """B13: an operand of an ONNX layer is constant if it comes only from constants. The reference counts the nodes that
    compute operands of the layer, and decides by this number."""
    model_every_operator: bool = False
    """B40: every ONNX operator that computes becomes a layer. In the reference, only Conv, QLinearConv, Gemm and MatMul
    become layers."""
    exact_window_sizes: bool = False
    """B12: distinct positions of sliding windows are counted exactly, and fractional tile sizes are rounded up. An
    operand has a window only along its own data dimensions."""
    serial_half_shared_loading: bool = False
    """B16: if only one end of a transfer is a port that both inputs share, the loading times of both inputs are added
    up. The reference overlaps these times, and counts only the outermost pair of memories. If a layer has a single
    input, its loading counts in full."""
    consistent_window_union: bool = False
    """B17: the union of transfer windows leaves out the first window of each link, in agreement with the sum of the
    windows."""
    per_level_loading_floor: bool = False
    """B19: before computing starts, a link must load the first tiles of all instances that it feeds, not only one tile.
    The required bandwidth is not truncated to whole bits."""
    live_tensor_capacity: bool = False
    """B32: data that are kept between layers take room in a memory, together with all other data that are still needed.
    Whether weights are kept is decided for each layer separately."""
    effective_top_memory_option: bool = False
    """B39: with `workload_data_always_from_top_mem`, the network reads its input from the top memory and writes its
    output there. In the reference, the option has no effect."""
    whole_tiles: bool = False
    """B41: a tile has a whole number of elements in each dimension. The transfers of a tensor add up to the tensor, in
    whole words."""
    every_transfer_takes_port_time: bool = False
    """B42: the first transfer to the array and all read-backs of partial sums take time on their ports. Loading is
    hidden behind the computation only while its port is free."""
    best_double_buffers: bool = False
    """B43: free room in a memory goes to the operands whose double-buffering saves the most stall cycles. In the
    reference, operands get the room in the order of the equation."""
    room_for_final_outputs: bool = False
    """B44: a memory that accumulates outputs needs room for them at the larger precision: that of partial sums or that
    of final outputs."""
    wide_until_added: bool = False
    """B47: if lanes above a memory add up partial sums, the sums leave the memory at the precision of partial sums. The
    reference takes the precision of final outputs."""
    keep_given_unrolling: bool = False
    """B45: an unrolling in the user's mapping file is not reduced to the width of the ports or to the size of the inner
    memories."""
    ties_by_equation: bool = False
    """B46: if two allocations of loops to a memory move the same number of bits, the order of the operands in the
    equation decides. In the reference, their order in the hardware file decides."""
    complete_in_memory_model: bool = False
    """B14: the model has an energy for in-memory arrays with several weights in a cell, or with neighbouring outputs of
    one sliding window in neighbouring columns. Each input takes one row. The reference can end with an error."""
    in_memory_active_parts: bool = False
    """B15: only busy lanes, and rows that receive inputs, consume energy in an in-memory array. The area includes every
    instance of a memory."""


SWITCHES: tuple[str, ...] = tuple(name for name in ModelProfile._fields if name != "name")
REFERENCE = ModelProfile()
CORRECTED = ModelProfile("corrected", *(True for _ in SWITCHES))
PROFILES: dict[str, ModelProfile] = {profile.name: profile for profile in (REFERENCE, CORRECTED)}


def profile_by_name(name: str) -> ModelProfile:
    """The model profile called `name`. The name can end with terms such as '+switch' and '-switch'.

    For example, `zigzag-3.9.1+exact_temporal_sizes` is the reference model with one repair. Raises InputError if the
    name of the profile or of a switch is unknown.
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
    """(name of a switch, True if the switch is on) for all switches, in the order of docs/model.md."""
    return ((switch, getattr(profile, switch)) for switch in SWITCHES)


@dataclass(frozen=True, eq=False, repr=False)
class ModelChoice(Parameters):
    """Parameter that selects the cost model."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = REFERENCE.name
    """Model profile: zigzag-3.9.1, corrected, or one of them with switches, such as zigzag-3.9.1+exact_window_sizes."""

    @property
    def profile(self) -> ModelProfile:
        """The model profile."""
        return profile_by_name(self.model)
