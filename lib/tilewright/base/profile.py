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
    """Repair of fault B4 (docs/model.md): the first accumulation of an output reads no partial sum back. If the whole
    reduction is spatial, no partial sum is ever read back."""
    round_up_spatial_factors: bool = False
    """Repair of fault B5 (docs/model.md): the latency analysis rounds up a spatial factor that does not divide its
    loop. The reference truncates such a factor."""
    independent_spatial_candidates: bool = False
    """Repair of fault B38 (docs/model.md): if an innermost memory is too small for a generated spatial mapping, only
    this mapping is reduced. In the reference, the reduction can also change other spatial mappings.
    """
    exact_temporal_sizes: bool = False
    """Repair of fault B6 (docs/model.md): temporal loop sizes follow from an exact division. The reference rounds
    twice, which can add an iteration."""
    onnx_height_is_y: bool = False
    """Repair of fault B10 (docs/model.md): index 0 of the kernel, stride, dilation and padding of an ONNX node is the
    height. The height is Y; the reference takes it as X."""
    trace_onnx_constants: bool = False
    """Repair of fault B13 (docs/model.md): an operand of an ONNX layer is constant if it comes only from constants. The
    reference counts the nodes that compute operands of the layer, and decides by this number."""
    model_every_operator: bool = False
    """Repair of fault B40 (docs/model.md): every ONNX operator that computes becomes a layer. In the reference, only
    Conv, QLinearConv, Gemm and MatMul become layers."""
    exact_window_sizes: bool = False
    """Repair of fault B12 (docs/model.md): distinct positions of sliding windows are counted exactly, and fractional
    tile sizes are rounded up. An operand has a window only along its own data dimensions."""
    serial_half_shared_loading: bool = False
    """Repair of fault B16 (docs/model.md): a transfer of an input uses two ports. If at least one of the two ports also
    serves the other input, the loading times of both inputs are added up. If exactly one port also serves the other
    input, the reference overlaps the loading times, and counts only the outermost of such transfers. For a layer with
    one input, all loading times are added up. The reference leaves out loading times at ports that could serve a second
    input.
    """
    consistent_window_union: bool = False
    """Repair of fault B17 (docs/model.md): the union of transfer windows leaves out the first window of each link. The
    sum of the windows leaves out this window with and without the repair.
    """
    per_level_loading_floor: bool = False
    """Repair of fault B19 (docs/model.md): before computing starts, a link loads the first tiles of all innermost
    memories that it feeds with different data. The reference loads only one tile. The reference also truncates the
    average bandwidth of each link to whole bits; with this switch, the bandwidth is exact.
    """
    live_tensor_capacity: bool = False
    """Repair of fault B32 (docs/model.md): data that are kept between layers take room in a memory, together with all
    other data that are still needed. Whether weights are kept is decided for each layer separately."""
    effective_top_memory_option: bool = False
    """Repair of fault B39 (docs/model.md): with `workload_data_always_from_top_mem`, the network reads its input from
    the top memory and writes its output there. In the reference, the option has no effect."""
    whole_tiles: bool = False
    """Repair of fault B41 (docs/model.md): a tile has a whole number of elements in each dimension, and the last word
    of a transfer counts even if it is not full. In the reference, tiles can have fractions of elements, and a last word
    that is not full is left out.
    """
    every_transfer_takes_port_time: bool = False
    """Repair of fault B42 (docs/model.md): the first transfer to the array, the last transfer from the array, and all
    read-backs of partial sums take time on their ports. The computation hides the loading over a port only while this
    port is free.
    """
    best_double_buffers: bool = False
    """Repair of fault B43 (docs/model.md): free room in a memory goes to the operands whose double-buffering saves the
    most stall cycles. In the reference, operands get the room in the order of the equation."""
    room_for_final_outputs: bool = False
    """Repair of fault B44 (docs/model.md): a memory that accumulates outputs needs room for the wider of partial sums
    and final outputs."""
    wide_until_added: bool = False
    """Repair of fault B47 (docs/model.md): if partial sums of several inner memories are added on their way to the next
    outer memory, they leave the inner memories with the bits of partial sums. The reference takes the bits of final
    outputs.
    """
    keep_given_unrolling: bool = False
    """Repair of fault B45 (docs/model.md): an unrolling in the user's mapping file is not reduced to the widths of
    ports or to the sizes of inner memories."""
    ties_by_equation: bool = False
    """Repair of fault B46 (docs/model.md): if two allocations of loops to a memory move the same number of bits, the
    order of the operands in the equation decides. In the reference, their order in the hardware file decides."""
    complete_in_memory_model: bool = False
    """Repair of fault B14 (docs/model.md): the model computes the energy of in-memory arrays in two cases in which the
    reference ends with an error. In the first case, cells hold several weights. In the second case, neighbouring
    columns compute neighbouring outputs of one sliding window; each distinct input then takes one row.
    """
    in_memory_active_parts: bool = False
    """Repair of fault B15 (docs/model.md): only busy lanes, and rows that receive inputs, consume energy in an
    in-memory array. The area includes every instance of a memory."""


SWITCHES: tuple[str, ...] = tuple(name for name in ModelProfile._fields if name != "name")
REFERENCE = ModelProfile()
CORRECTED = ModelProfile("corrected", *(True for _ in SWITCHES))
PROFILES: dict[str, ModelProfile] = {profile.name: profile for profile in (REFERENCE, CORRECTED)}


def profile_by_name(name: str) -> ModelProfile:
    """Model profile called `name`. The name begins with a known profile, and can end with terms that turn switches on
    ('+switch') or off ('-switch').

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
    """Pairs (name of a switch, is_on), one for each switch, in the order of docs/model.md."""
    return ((switch, getattr(profile, switch)) for switch in SWITCHES)


@dataclass(frozen=True, eq=False, repr=False)
class ModelChoice(Parameters):
    """Parameter that selects the cost model."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = REFERENCE.name
    """Model profile: zigzag-3.9.1 or corrected, alone or with switches, such as zigzag-3.9.1+exact_window_sizes."""

    @property
    def profile(self) -> ModelProfile:
        """Model profile that `model` names."""
        return profile_by_name(self.model)
