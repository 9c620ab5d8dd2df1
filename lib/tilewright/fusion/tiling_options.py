"""How a run cuts its network into computation nodes: the options, and the tiling that they make.

Both dialects of Stream: `cn_define_mode` with `hint_loops` (until 2024), or, without it, the tilings of the mapping
file and layer stacks (2025). Nothing heavy is imported here: the configuration is checked with this class.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.fusion.hint_loops import (
    BY_LAYER,
    MODES,
    SPLIT_WEIGHTS,
    HintLoopOptions,
    HintLoops,
    hint_loop_problems,
    hint_loop_tiling,
)
from tilewright.fusion.stacks import FUSED, LAYER_BY_LAYER, STACK_MODES, Stacks, layer_stacks

if TYPE_CHECKING:
    from tilewright.fusion.outer_loops import Tiling
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.mapping.constraints import Mapping, MappingConstraints
    from tilewright.workload.graph import Workload

_LOOPS_FORM = "a list of [DIMENSION, size], with cn_define_mode 3 a list of such lists or a table from layers to them"


@dataclass(frozen=True)
class TilingOptions:
    """How a network is cut. Lists may be given for tuples. Raises InputError with all values that are wrong."""

    cn_define_mode: int | None = None
    """1 to 4: cut by `hint_loops`; None: by the tilings of the mapping file."""
    hint_loops: HintLoops | None = None
    """[(dimension, tiles or "all")], innermost first; mode 2: what stays inside; mode 3: for each group of layers."""
    layer_cutoffs: tuple[int, ...] = ()
    """Mode 3: node ids at which the next list of `hint_loops` begins."""
    mode: str = FUSED
    """lbl: every layer alone in its stack; fused: layers of a stack are interleaved."""
    layer_stacks: Stacks | None = None
    """Node ids of the layers of each stack; those in none are alone."""
    stack_cutoffs: tuple[int, ...] = ()
    """Node ids at which stacks end."""
    split_w_percentage: float = 1.0
    """Share of a memory that weights may take, above 0 and at most 1; of mode 4 and of layer splitting."""

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        for name, plain in (
            ("hint_loops", _plain_loops(self.hint_loops, problems)),
            ("layer_cutoffs", _node_ids(self.layer_cutoffs, "layer_cutoffs", problems)),
            ("layer_stacks", _stacks(self.layer_stacks, problems)),
            ("stack_cutoffs", _node_ids(self.stack_cutoffs, "stack_cutoffs", problems)),
        ):
            object.__setattr__(self, name, plain)
        problems += _value_problems(self)
        if problems:
            raise InputError(dict.fromkeys(problems))

    def hints(self, weight_capacity_bits: dict[int, int] | None = None) -> HintLoopOptions:
        """The hint loops with their mode; only where there is a `cn_define_mode`."""
        assert self.cn_define_mode is not None
        loops = self.hint_loops or ()
        if self.cn_define_mode == BY_LAYER and not loops and not isinstance(loops, Table):
            loops = ((),)
        return HintLoopOptions(self.cn_define_mode, loops, self.layer_cutoffs, weight_capacity_bits)

    def stated(self) -> dict[str, Any]:
        """The options as plain data for provenance."""
        hints: Any = self.hint_loops
        if isinstance(hints, Table):
            hints = [[list(members), loops] for members, loops in hints.items()]
        return {
            "cn_define_mode": self.cn_define_mode,
            "hint_loops": _as_lists(hints),
            "layer_cutoffs": list(self.layer_cutoffs),
            "mode": self.mode,
            "layer_stacks": _as_lists(self.layer_stacks),
            "stack_cutoffs": list(self.stack_cutoffs),
            "split_w_percentage": self.split_w_percentage,
        }


def network_tiling(
    workload: "Workload", mapping: "Mapping", accelerator: "MultiCoreAccelerator", options: TilingOptions
) -> "Tiling":
    """The tiling of every layer of a network and its stacks. Raises InputError with all problems.

    With `cn_define_mode` all layers are one stack unless stacks, their ends, or mode lbl are given; mode lbl with
    `cn_define_mode` 1 and no loops is one CN for each layer, whatever the mapping file says.
    """
    from tilewright.fusion.mapped_tiling import mapped_tiling

    if options.cn_define_mode is None:
        entry_of = mapping.constraints_of(workload)
        return mapped_tiling(workload, entry_of, _network_stacks(workload, entry_of, accelerator, options))
    capacities = _weight_capacities(workload, mapping, accelerator, options)
    tiling = hint_loop_tiling(workload, options.hints(capacities))
    if options.mode == LAYER_BY_LAYER or options.layer_stacks is not None or options.stack_cutoffs:
        stacks = _network_stacks(workload, mapping.constraints_of(workload), accelerator, options)
        return replace(tiling, stacks=stacks)
    return tiling


def _network_stacks(
    workload: "Workload",
    entry_of: "Table[int, MappingConstraints]",
    accelerator: "MultiCoreAccelerator",
    options: TilingOptions,
) -> Stacks:
    from tilewright.fusion.weight_memories import total_weight_capacity_bits

    capacity_bits = total_weight_capacity_bits(workload, entry_of, accelerator)
    return layer_stacks(workload, options.mode, options.layer_stacks, options.stack_cutoffs, capacity_bits)


def _weight_capacities(
    workload: "Workload", mapping: "Mapping", accelerator: "MultiCoreAccelerator", options: TilingOptions
) -> dict[int, int] | None:
    """Node id -> bits that the weights of a CN may take in mode 4.

    A layer whose cores are fixed is split into the groups that its list has cores for, so that a mapping file that
    fixes what was found for open cores cuts the layer alike.
    """
    from tilewright.fusion.weight_memories import weight_capacity_bits
    from tilewright.fusion.weights import capacity_for_tiles, network_input_operands

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
            bits = weight_capacity_bits(node, entry, accelerator, options.split_w_percentage)
        capacities[node.node_id] = bits
    return {node_id: bits for node_id, bits in capacities.items() if bits is not None}


def _value_problems(options: TilingOptions) -> list[Problem]:
    problems = []
    mode, hints = options.cn_define_mode, options.hint_loops
    if mode is not None and (type(mode) is not int or mode not in MODES):
        allowed = ", ".join(map(str, MODES))
        problems.append(Problem("not a way to define CNs", path="cn_define_mode", value=str(mode), allowed=allowed))
    elif mode is not None:
        problems += hint_loop_problems(options.hints())
    elif hints is not None:
        message = "needs a cn_define_mode; without one the mapping file cuts the layers"
        problems.append(Problem(message, path="hint_loops", allowed="cn_define_mode: 1 for loops around every layer"))
    if options.layer_cutoffs and mode != BY_LAYER:
        problems.append(Problem("is for cn_define_mode 3 only", path="layer_cutoffs"))
    if options.mode not in STACK_MODES:
        allowed, nearest = ", ".join(STACK_MODES), nearest_name(str(options.mode), STACK_MODES)
        problems.append(Problem("not a mode", path="mode", value=repr(options.mode), allowed=allowed, nearest=nearest))
    if options.layer_stacks is not None and options.stack_cutoffs:
        problems.append(Problem("plays no part where layer_stacks are given", path="stack_cutoffs"))
    if options.mode == LAYER_BY_LAYER and (options.layer_stacks is not None or options.stack_cutoffs):
        name = "layer_stacks" if options.layer_stacks is not None else "stack_cutoffs"
        problems.append(Problem("plays no part in mode lbl, where every layer is alone", path=name))
    if list(options.stack_cutoffs) != sorted(set(options.stack_cutoffs)):
        problems.append(Problem("must rise", path="stack_cutoffs", value=str(list(options.stack_cutoffs))))
    share = options.split_w_percentage
    if type(share) not in (int, float) or not 0 < share <= 1:
        allowed = "a share above 0 and at most 1"
        problems.append(Problem("wrong share", path="split_W_percentage", value=repr(share), allowed=allowed))
    return problems


def _plain_loops(value: Any, problems: list[Problem]) -> HintLoops | None:
    """Loops as nested tuples, or a table from tuples of node ids to them; what is no list stays for the next check."""
    if isinstance(value, Table):
        table: dict[tuple[int, ...], Any] = {}
        for key, loops in value.items():
            members = _members(key)
            if members is None:
                path, allowed = f"hint_loops[{key}]", "node ids of layers, such as 3 or 0, 1, 2"
                problems.append(Problem("must name layers", path=path, value=repr(key), allowed=allowed))
                continue
            table[members] = _as_tuples(loops)
        return table
    if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
        problems.append(Problem("wrong form", path="hint_loops", value=repr(value), allowed=_LOOPS_FORM))
        return None
    return _as_tuples(value)  # type: ignore[no-any-return]


def _members(key: Any) -> tuple[int, ...] | None:
    """The node ids that a key names: a number, numbers, or text such as `0, 1` (also in brackets)."""
    if isinstance(key, str):
        parts = key.strip().strip("()[]").rstrip(",").split(",")
        numbers: list[Any] = [int(part) if part.strip().isdecimal() else None for part in parts]
    else:
        numbers = list(key) if isinstance(key, tuple | list) else [key]
    return tuple(numbers) if numbers and all(_is_id(number) for number in numbers) else None


def _node_ids(value: Any, path: str, problems: list[Problem]) -> tuple[int, ...]:
    if isinstance(value, list | tuple) and all(_is_id(item) for item in value):
        return tuple(value)
    problems.append(Problem("must be a list of node ids", path=path, value=repr(value), allowed="whole numbers from 0"))
    return ()


def _stacks(value: Any, problems: list[Problem]) -> Stacks | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        allowed = "lists of node ids, such as [[0, 1, 2], [3, 4]]"
        problems.append(Problem("must be a list of stacks", path="layer_stacks", value=repr(value), allowed=allowed))
        return ()
    return tuple(_node_ids(stack, f"layer_stacks[{place}]", problems) for place, stack in enumerate(value))


def _is_id(value: Any) -> bool:
    return type(value) is int and value >= 0


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


def _as_lists(value: Any) -> Any:
    return [_as_lists(item) for item in value] if isinstance(value, list | tuple) else value
