"""Options that decide how a run cuts its network into computation nodes (CNs), and the resulting tiling.

Both notations of Stream are supported: `cn_define_mode` with `hint_loops` (until 2024), and the tilings of the mapping
file with layer stacks (2025). This module imports only modules that are fast to import, because the check of a
configuration needs it.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits, Parameters, Read, Told, parameters_of
from tilewright.multicore.nodes.stacks import FUSED, LAYER_BY_LAYER, StackMode, Stacks, layer_stacks
from tilewright.multicore.nodes.tiling import (
    BY_LAYER,
    SPLIT_WEIGHTS,
    DefineMode,
    HintLoopOptions,
    HintLoops,
    hint_loop_problems,
    hint_loop_tiling,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.mapping.constraints import Mapping, MappingConstraints
    from tilewright.multicore.nodes.tiling import Tiling
    from tilewright.workload.graph import Workload


@dataclass(frozen=True, init=False, eq=False, repr=False)
class WeightShare(Parameters):
    """Option: share of a memory that weights can take."""

    split_W_percentage: Annotated[  # noqa: N815  the name in Stream
        float, Limits(above=0, most=1), Told("wrong share", "a share above 0 and at most 1")
    ] = 1.0
    """Share of a memory that weights can take, above 0 and at most 1; for `cn_define_mode` 4 and layer splitting."""


@dataclass(frozen=True, eq=False, repr=False)
class SplitOptions(WeightShare):
    """Options that limit the size of the weights in each part of a split layer."""

    split_W_double_buffered: bool = False  # noqa: N815  the name in Stream
    """True if the memory must also have room for the weights of the next part, which are fetched while a part runs."""

    @property
    def share(self) -> "Fraction":
        """Largest share of a memory's capacity that the weights of one part of a split layer can take. With double
        buffering, it is half of `split_W_percentage`.
        """
        from fractions import Fraction  # imported here, because commands that split nothing start faster without it

        share = Fraction(repr(self.split_W_percentage))
        return share / 2 if self.split_W_double_buffered else share


_LOOPS_FORM = (
    "a list of [DIMENSION, size] pairs; with cn_define_mode 3: a list of such lists, or a table from layers"
    " to such lists"
)


def _read_loops(value: Any, name: str) -> HintLoops | None:
    """Hint loops as nested tuples; None if `value` is None. If `value` is a table, the result is a table, too: tuple of
    node ids -> hint loops as nested tuples.

    Raises InputError if `value` is of another kind than None, a list or a table, or if a key of the table names no
    layers. The loops themselves are checked later.
    """
    if isinstance(value, Table):
        table = {_members(key): _as_tuples(loops) for key, loops in value.items()}
        problems = [
            Problem(
                "must name layers", path=f"{name}[{key}]", value=repr(key), allowed="node ids, such as `3` or `0, 1, 2`"
            )
            for key in value
            if not _members(key)
        ]
        if problems:
            raise InputError(problems)
        return table
    if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise InputError([Problem("wrong form", path=name, value=repr(value), allowed=_LOOPS_FORM)])
    return _as_tuples(value)  # type: ignore[no-any-return]


def _members(key: Any) -> tuple[int, ...]:
    """Node ids in a key of a table; () for an invalid key. A valid key is one number, several numbers, or a text such
    as `0, 1` (also in brackets).
    """
    if isinstance(key, str):
        parts = key.strip().strip("()[]").rstrip(",").split(",")
        numbers: list[Any] = [int(part) if part.strip().isdecimal() else None for part in parts]
    else:
        numbers = list(key) if isinstance(key, tuple | list) else [key]
    return tuple(numbers) if all(_is_id(number) for number in numbers) else ()


def _read_node_ids(value: Any, name: str) -> tuple[int, ...]:
    if isinstance(value, list | tuple) and all(_is_id(item) for item in value):
        return tuple(value)
    allowed = "whole numbers from 0"
    raise InputError([Problem("must be a list of node ids", path=name, value=repr(value), allowed=allowed)])


def read_stacks(value: Any, name: str) -> Stacks | None:
    """Stacks as tuples of node ids; None if `value` is None. Raises InputError with all values that are not lists of
    node ids.
    """
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        allowed = "lists of node ids, such as [[0, 1, 2], [3, 4]]"
        raise InputError([Problem("must be a list of stacks", path=name, value=repr(value), allowed=allowed)])
    told = Problems()
    stacks = [told.attempt(_read_node_ids, stack, f"{name}[{place}]") for place, stack in enumerate(value)]
    told.finish()
    return tuple(stack for stack in stacks if stack is not None)


def _is_id(value: Any) -> bool:
    return type(value) is int and value >= 0


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, list | tuple) else value


NodeIds = Annotated[tuple[int, ...], Read(_read_node_ids)]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Cutting(Parameters):
    """Options for the loops that cut layers into computation nodes, and for the fusion of layers."""

    cn_define_mode: Annotated[DefineMode, Told("no mode for cutting layers into CNs has this number")] | None = None
    """Mode for cutting layers into CNs. null: the mapping file decides how layers are cut. 1: the loops of `hint_loops`
    cut every layer. 2: the loops of `hint_loops` stay inside a CN; all other dimensions are cut into single steps. 3:
    like 1, but different layers can have different loops. 4: like 1; in addition, weights that are too large are split.
    """
    hint_loops: Annotated[HintLoops | None, Read(_read_loops)] = None
    """List of loops, innermost first. A loop is a dimension with a number of tiles or `all`, as in [["OY", "all"]]. In
    mode 3, the value is a list of such lists, or a table: ids of layers -> list of loops.
    """
    layer_cutoffs: NodeIds = ()
    """Ids of layers, for mode 3 if `hint_loops` is a list of lists. At each of these layers, the next list of
    loops begins to apply.
    """
    mode: Annotated[StackMode, Told("not a mode")] = "fused"
    """Fusion of layers. fused: the layers of a stack are interleaved; lbl: every layer is a separate stack."""
    layer_stacks: Annotated[Stacks | None, Read(read_stacks)] = None
    """Ids of the layers of each stack, as in [[0, 1], [2]]. Every other layer is a separate stack."""
    stack_cutoffs: NodeIds = ()
    """Ids of the layers after which a stack ends. Each layer after the last of these layers is a separate stack. A
    stack ends earlier if the weights of its next layer no longer fit on chip; every later layer of the network is then
    a separate stack.
    """


@dataclass(frozen=True, eq=False, repr=False)
class TilingOptions(WeightShare, Cutting):
    """Options that cut a network into computation nodes. Lists are accepted in place of tuples. Raises InputError with
    all invalid values.
    """

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Problems with options that exclude each other, and with invalid loops. `wrong` has the names of options that
        already have a problem.
        """
        if "cn_define_mode" not in wrong:
            yield from _cutting_problems(self, wrong)
        if self.layer_stacks is not None and self.stack_cutoffs:
            yield Problem("has no effect together with layer_stacks", path="stack_cutoffs")
        if self.mode == LAYER_BY_LAYER and (self.layer_stacks is not None or self.stack_cutoffs):
            name = "layer_stacks" if self.layer_stacks is not None else "stack_cutoffs"
            yield Problem("has no effect with `mode: lbl`, in which every layer is a stack", path=name)
        if "stack_cutoffs" not in wrong and list(self.stack_cutoffs) != sorted(set(self.stack_cutoffs)):
            yield Problem("must rise", path="stack_cutoffs", value=str(list(self.stack_cutoffs)))

    def takes_stacks_of(self, mapping: "Mapping") -> bool:
        """True if the stacks of the mapping file are used."""
        return bool(mapping.stacks) and (self.mode, self.layer_stacks, self.stack_cutoffs) == (FUSED, None, ())

    def without_effect(self) -> dict[str, str]:
        """Option -> reason why it has no effect. `split_W_percentage` is also listed if `cn_define_mode` is not 4."""
        found = super().without_effect()
        if self.cn_define_mode != SPLIT_WEIGHTS:
            found["split_W_percentage"] = f"has no effect without cn_define_mode {SPLIT_WEIGHTS}"
        return found

    def hints(self, weight_capacity_bits: dict[int, int] | None = None) -> HintLoopOptions:
        """Mode and options of the hint loops. The option `cn_define_mode` must be set."""
        assert self.cn_define_mode is not None
        loops = self.hint_loops or ()
        if self.cn_define_mode == BY_LAYER and not loops and not isinstance(loops, Table):
            loops = ((),)
        return HintLoopOptions(self.cn_define_mode, loops, self.layer_cutoffs, weight_capacity_bits)

    def stated(self) -> JsonObject:
        """Options as plain data for provenance."""
        hints: Any = self.hint_loops
        if isinstance(hints, Table):
            hints = [[list(members), loops] for members, loops in hints.items()]
        values = {parameter.name: getattr(self, parameter.name) for parameter in parameters_of(TilingOptions)}
        return {name: _as_lists(value) for name, value in (values | {"hint_loops": hints}).items()}


def network_tiling(
    workload: "Workload", mapping: "Mapping", accelerator: "MultiCoreAccelerator", options: TilingOptions
) -> "Tiling":
    """Tiling of every layer of a network, and the stacks of the network. Raises InputError with all problems.

    With `cn_define_mode`, the tilings of the mapping file are not used. All layers are then one stack, but
    `layer_stacks`, `stack_cutoffs` or mode lbl can give other stacks. Mode lbl with `cn_define_mode` 1 and no loops
    gives one CN for each layer.
    """
    from tilewright.multicore.nodes.tiling import mapped_tiling

    if options.cn_define_mode is None:
        entry_of = mapping.constraints_of(workload)
        return mapped_tiling(workload, entry_of, _network_stacks(workload, mapping, entry_of, accelerator, options))
    capacities = _weight_capacities(workload, mapping, accelerator, options)
    tiling = hint_loop_tiling(workload, options.hints(capacities))
    if options.mode == LAYER_BY_LAYER or options.layer_stacks is not None or options.stack_cutoffs:
        stacks = _network_stacks(workload, mapping, mapping.constraints_of(workload), accelerator, options)
        return replace(tiling, stacks=stacks)
    return tiling


def _network_stacks(
    workload: "Workload",
    mapping: "Mapping",
    entry_of: "Table[int, MappingConstraints]",
    accelerator: "MultiCoreAccelerator",
    options: TilingOptions,
) -> Stacks:
    """Stacks of a network. Stacks of the mapping file are used if the options give no stacks and no mode lbl."""
    from tilewright.multicore.nodes.weights import total_weight_capacity_bits

    if options.takes_stacks_of(mapping):
        return layer_stacks(workload, stacks=mapping.stacks)
    capacity_bits = total_weight_capacity_bits(workload, entry_of, accelerator)
    return layer_stacks(workload, options.mode, options.layer_stacks, options.stack_cutoffs, capacity_bits)


def _weight_capacities(
    workload: "Workload", mapping: "Mapping", accelerator: "MultiCoreAccelerator", options: TilingOptions
) -> dict[int, int] | None:
    """Bits that are available for the weights of a CN in mode 4, by the layer's node id; None in any other mode. Layers
    without a limit have no entry.

    If the cores of a layer are fixed, the layer is split into one group for each core of its mapping entry. Therefore,
    if a mapping file fixes the cores that a search found, the layer is cut in the same way as in the search.
    """
    from tilewright.multicore.nodes.weights import capacity_for_tiles, network_input_operands, weight_capacity_bits

    if options.cn_define_mode != SPLIT_WEIGHTS:
        return None
    unsplit = hint_loop_tiling(workload, options.hints())
    capacities: dict[int, int | None] = {}
    for node in workload.nodes:
        if node.layer is None:
            continue
        entry = mapping.constraints_for(node.layer)
        if entry.core_allocation_is_fixed:
            wanted = len(entry.core_allocation) // unsplit.of_node[node.node_id].group_count
            bits = capacity_for_tiles(node.layer, max(wanted, 1), network_input_operands(node, workload))
        else:
            bits = weight_capacity_bits(node, entry, accelerator, options.split_W_percentage)
        capacities[node.node_id] = bits
    return {node_id: bits for node_id, bits in capacities.items() if bits is not None}


CUTTING = ("cn_define_mode", "hint_loops", "layer_cutoffs")
"""Names of the options that decide how a layer is cut into CNs."""


def _cutting_problems(options: TilingOptions, wrong: set[str]) -> Iterator[Problem]:
    mode = options.cn_define_mode
    if mode is not None and not wrong & {"hint_loops", "layer_cutoffs"}:
        yield from hint_loop_problems(options.hints())
    elif mode is None and options.hint_loops is not None:
        message = "needs a cn_define_mode; without cn_define_mode, only the mapping file cuts the layers"
        yield Problem(
            message, path="hint_loops", allowed="cn_define_mode: 1, which puts the same loops around every layer"
        )
    if "layer_cutoffs" not in wrong and options.layer_cutoffs and mode != BY_LAYER:
        yield Problem("is for cn_define_mode 3 only", path="layer_cutoffs")
