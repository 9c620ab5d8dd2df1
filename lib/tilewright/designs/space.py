"""Design space: a base accelerator with axes, laws and constraints, and the options of its searches."""

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import KeyPath, Problem, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import PositiveCount, parameters_of
from tilewright.base.profile import CORRECTED
from tilewright.designs.columns import ODDS, RESULTS, UNMET_END, USES
from tilewright.designs.laws import Expression, ExpressionError, Value
from tilewright.hardware.text_edits import with_values
from tilewright.multicore.allocation.options import AllocationParameters
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.configuration.fusion_options import FusionOptions, PlanEffort, PlanSchedule
from tilewright.search.options import CnSearchOptions, SearchOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class SystemOptions(CnSearchOptions, TilingOptions, AllocationParameters, ScheduleSettings):
    """Options for designs with several cores, if fusion is not searched. They are the options for four tasks: search on
    a core, division into computation nodes, search for an allocation, and scheduling.
    """

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Mistakes that arise because some options exclude each other."""
        yield from CnSearchOptions.conflicts(self, wrong)
        yield from TilingOptions.conflicts(self, wrong)

    def without_effect(self) -> dict[str, str]:
        """Reason why an option has no effect, by name of the option. For example, an option has no effect if it belongs
        to a search engine that is not used.

        `seed` is never in the table, because the search for an allocation uses it.
        """
        return {name: why for name, why in super().without_effect().items() if name != "seed"}

    def stated(self) -> JsonObject:
        """Options as JSON values."""
        tiling = self.part(TilingOptions).stated()
        return tiling | {name: encode(value) for name, value in self.as_dict().items() if name not in tiling}


@dataclass(frozen=True, eq=False, repr=False)
class FusedSystemOptions(PlanSchedule, PlanEffort, CnSearchOptions):
    """Options for designs with several cores, if fusion is searched: options of the search on a core, of the search for
    plans, and of the schedules.
    """

    fusion: Literal["search"] = "search"
    """`search`: for each design, a search chooses stacks, tiles, parts, cores and schedule options, as in `tilewright
    fuse`. If the key is absent, all designs have the same tiles, and a search chooses only the cores.
    """
    search_block: PositiveCount = 8
    """Number of consecutive designs in a block. The designs of a block are searched one after another. A search can
    start from the plan of another design of the same block. A design is dropped if the results of another design of its
    block dominate its lower bounds.
    """

    def without_effect(self) -> dict[str, str]:
        """Reason why an option has no effect, by name of the option. `seed` always has an effect."""
        return {name: why for name, why in super().without_effect().items() if name != "seed"}

    @property
    def of_search(self) -> FusionOptions:
        """Options of the search for a plan of one design. Only counts of plans and schedules limit the search, so that
        its result does not depend on the speed of the machine.
        """
        return self.part(FusionOptions, fusion_time_budget_s=None, fusion_cpu_budget_s=None, jobs=1)


SpaceOptions = SearchOptions | SystemOptions | FusedSystemOptions
KINDS: tuple[type[SpaceOptions], ...] = (SearchOptions, SystemOptions, FusedSystemOptions)
"""Classes of the search options: for one core, for several cores, and for several cores with searched fusion."""
FUSION = "fusion"
"""Name of the option for searched fusion. If a space file gives this option, the options of the space have the class
FusedSystemOptions.
"""
DEFAULTS: dict[type[SpaceOptions], Mapping[str, Any]] = {
    SearchOptions: {"model": CORRECTED.name, "exploit_data_locality": True, "bounds": True},
    SystemOptions: {},
    FusedSystemOptions: {"nb_schedules": 500},
}
"""Defaults of a space that differ from the defaults of the option classes.

* `exploit_data_locality`: data stay on chip between layers. Without this option, a larger memory would never pay off.
* `bounds`: lower bounds are computed, so that the answer can state the gaps between them and the mappings of designs on
  the front.
* `nb_schedules`: a search for plans makes few schedules, because a space has many designs.
"""


def kind_of_options(is_of_systems: bool, given: Container[str]) -> type[SpaceOptions]:
    """Class of the search options. `is_of_systems` is true if the designs have several cores. `given` has the names of
    the options in the space file.
    """
    if not is_of_systems:
        return SearchOptions
    return FusedSystemOptions if FUSION in given else SystemOptions


def option_of_other_kind(kind: type[SpaceOptions], name: str) -> str:
    """Message on an option that only designs of another kind have; '' for any other name."""
    owners = [other for other in KINDS if name in {one.name for one in parameters_of(other)}]
    if not owners or kind in owners:
        return ""
    if kind is SearchOptions:
        return "is only for an accelerator with several cores, but the base has one core"
    if SearchOptions in owners:
        return "is only for an accelerator with one core, but the base has several cores"
    if kind is SystemOptions:
        return f"is only for designs whose fusion is searched: add `{FUSION}: search`"
    return f"is only for designs whose fusion is not searched: remove this key, or the key `{FUSION}`"


def stated_options(options: SpaceOptions) -> JsonObject:
    """Options as JSON values."""
    if isinstance(options, SystemOptions):
        return options.stated()
    found: dict[str, Any] = encode(options)
    return found


MOST_KEPT = 2**16
"""Largest number of combinations of axis values for which a formula's values are stored. If there are more, the formula
is computed for each design.
"""
_TRIED = 1000
"""Number of designs that are tried one by one to find an allowed design, before all combinations are checked together.
"""


@dataclass(frozen=True)
class Network:
    """Network that every design runs."""

    name: str
    file: Path
    options: NetworkOptions = NetworkOptions()  # noqa: RUF009  immutable
    """Options with which an ONNX file is read: the bits of its operands, and their shares of zeros."""


@dataclass(frozen=True)
class Design:
    """Design of a space: an accelerator, with the values that define it."""

    index: int
    """Index of the design in the space, from 0; the last axis varies fastest."""
    values: dict[str, Value]
    """Values of the axes, then of the names that laws define, in the order of the file. Laws that cannot be computed
    are left out.
    """
    hardware: dict[str, Any]
    """Content of the hardware file of the design. {} if there is none; `problem` then has the reason.

    Callers must not change this dict, because designs share their common parts.
    """
    excluded_by: str = ""
    """Text of the first constraint that the design violates, among the constraints that are checked before evaluation;
    '' if there is none.
    """
    problem: str = ""
    """Reason why there is no hardware file: a law or a constraint cannot be computed, for example because of a division
    by zero. '' if there is a file.
    """


@dataclass(frozen=True)
class Outline:
    """Settings that turn the base into a design, without the resulting hardware file."""

    settings: tuple[tuple[KeyPath, Any], ...]
    """Settings of axes, then of laws. () if there is no hardware file; `problem` then has the reason."""
    excluded_by: str = ""
    problem: str = ""
    """Reason why there is no hardware file: a law or a constraint cannot be computed. '' if there is a file."""


@dataclass(frozen=True)
class Axis:
    """Axis: a quantity that varies between designs."""

    name: str
    values: tuple[Value, ...]
    settings: tuple[tuple[tuple[KeyPath, Any], ...], ...]
    """Changes of the base for each value of the axis, in the order of `values`. A change is a pair (path, new value).
    """


@dataclass(frozen=True)
class Formula:
    """Expression with the axes on which its value depends."""

    expression: Expression
    axes: tuple[int, ...]
    """Indexes of the axes on which the expression depends, directly or through laws."""
    is_kept: bool
    """True if the value of the formula is stored for each combination of axis values. Values are stored if there are at
    most MOST_KEPT combinations.
    """
    kept: dict[tuple[int, ...], "_Outcome"] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Law:
    """Law: a value that is computed from other values."""

    key: str
    """Text as written in the file: the name that the law defines, or the dotted path that it sets."""
    formula: Formula
    path: KeyPath | None
    """Path that the law sets in the base. None if the law defines a name."""


@dataclass(frozen=True)
class _Outcome:
    """Outcome of a formula for a combination of axis values: its value, or the reason why there is none."""

    value: Value
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Space:
    """Design space: designs by index, with the networks and options for their evaluation."""

    name: str
    file: str
    """Path of the space file; '' if the space is a dict."""
    networks: tuple[Network, ...]
    mapping: Path | None
    """Path of the mapping file.

    None stands for a mapping file with only an entry `default`. This entry has the default links of operands and no
    spatial mapping. Spatial mappings are then generated.
    """
    options: SpaceOptions
    objectives: tuple[str, ...]
    """Objectives of the Pareto front: names in RESULTS."""
    shard_designs: int | None
    base: dict[str, Any]
    """Content of the base's hardware file. With several cores, it includes all core files under `core_files`."""
    axes: tuple[Axis, ...]
    laws: tuple[Law, ...]
    constraints_before: tuple[Formula, ...]
    """Constraints that are checked before evaluation."""
    constraints_after: tuple[Formula, ...]
    """Constraints on results, which are checked after evaluation."""
    rows: tuple[tuple[int, ...], ...] | None = None
    """Index of the value of each axis, for each design of a design sheet. None if all combinations of values are
    designs.
    """
    row_names: tuple[str, ...] = ()
    """Names of the designs in the design sheet; () if the space has no sheet, or if the sheet has no names."""

    @property
    def is_of_systems(self) -> bool:
        """True if the designs have several cores."""
        return "cores" in self.base

    @property
    def block_size(self) -> int:
        """Number of consecutive designs whose searches depend on each other; 1 if designs are independent."""
        return self.options.search_block if isinstance(self.options, FusedSystemOptions) else 1

    @property
    def value_names(self) -> tuple[str, ...]:
        """Columns of values in tables of designs: axes, then names that laws define."""
        return (*(axis.name for axis in self.axes), *(law.key for law in self.laws if law.path is None))

    def __len__(self) -> int:
        """Number of designs, including those that violate constraints."""
        return math.prod(self._sizes) if self.rows is None else len(self.rows)

    def design(self, index: int) -> Design:
        """Design with this index. It depends only on the space and the index. Raises IndexError if there is no such
        design.
        """
        positions = self.positions(index)
        values = self._axis_values(positions)
        found = self._law_outcomes(positions)
        values |= {law.key: outcome.value for law, outcome in found if law.path is None and not outcome.problem}
        outline = self._outline(positions, found)
        hardware = {} if outline.problem else with_values(self.base, outline.settings)
        return Design(index, values, hardware, outline.excluded_by, outline.problem)

    def values(self, index: int) -> dict[str, Value]:
        """Values of the design with this index, as constraints read them. Raises IndexError if there is no such
        design.
        """
        positions = self.positions(index)
        outcomes = ((law, self._outcome(law.formula, positions)) for law in self.laws if law.path is None)
        named = {law.key: outcome.value for law, outcome in outcomes if not outcome.problem}
        return self._axis_values(positions) | named

    @cached_property
    def known_values(self) -> dict[str, tuple[Value, ...]]:
        """Possible values of each axis and of each law that defines a name, by name of the axis or law.

        Values of designs without results are included. A law is left out if it depends on more than MOST_KEPT
        combinations of axis values.
        """
        found = {axis.name: axis.values for axis in self.axes}
        for law in self.laws:
            if law.path is None and law.formula.is_kept:
                ranges = [range(size if axis in law.formula.axes else 1) for axis, size in enumerate(self._sizes)]
                outcomes = [self._outcome(law.formula, positions) for positions in itertools.product(*ranges)]
                found[law.key] = tuple(outcome.value for outcome in outcomes if not outcome.problem)
        return found

    def outline(self, index: int) -> Outline:
        """Settings that turn the base into the design with this index. Raises IndexError if there is no such design."""
        positions = self.positions(index)
        return self._outline(positions, self._law_outcomes(positions))

    def design_name(self, index: int) -> str:
        """Name of a design: its name in the design sheet. If the sheet gives no name, the result consists of the name
        of the space and the index.

        Raises IndexError if there is no such design.
        """
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.row_names[index] if self.row_names else f"{self.name}-{index:0{len(str(len(self)))}}"

    def named_hardware(self, index: int) -> JsonObject:
        """Content of the hardware file of a design, in which the accelerator has the name of the design. {} if the
        design has no hardware file.
        """
        name, hardware = {"name": self.design_name(index)}, self.design(index).hardware
        return {**name, **hardware, **name} if hardware else {}

    def unmet(self, values: Mapping[str, Value], results: Mapping[str, float]) -> str:
        """Constraints that the results of a design on a network violate, joined by UNMET_END; '' if they meet all
        constraints.

        `values` are the values of the design. `results` has the results by their names in LIMITED (columns.py). A
        constraint on a missing result counts as violated.
        """
        found = (_unmet_text(constraint.expression, values, results) for constraint in self.constraints_after)
        return UNMET_END.join(filter(None, found))

    def count_allowed(self) -> int:
        """Number of allowed designs. An allowed design meets all constraints that are checked before evaluation, and
        all its laws can be computed.
        """
        if self.rows is not None:
            return sum(map(self._is_allowed, self.rows))
        allowed = self._allowed_combinations()
        return int(allowed.sum()) * (len(self) // allowed.size)

    def allowed_in(self, indexes: Iterable[int]) -> int:
        """Number of designs among `indexes` that `count_allowed` counts."""
        if not self.laws and not self.constraints_before:
            return len([*indexes])
        return sum(self._is_allowed(self.positions(index)) for index in indexes)

    def size_text(self) -> str:
        """Text with the number of designs, which is shown before evaluation."""
        allowed, networks = self.count_allowed(), count_of(len(self.networks), "network")
        left = "" if allowed == len(self) else f", of which {allowed:,} meet the constraints checked before evaluation"
        return f"{count_of(len(self), 'design')}{left}, on {networks}"

    def first_allowed(self) -> int | None:
        """Index of the first allowed design. An allowed design meets all constraints that are checked before
        evaluation, and all its laws can be computed.

        None if no design is allowed.
        """
        tried = len(self) if self.rows is not None else min(len(self), _TRIED)
        found = next((index for index in range(tried) if self._is_allowed(self.positions(index))), None)
        if found is not None or tried == len(self):
            return found
        import numpy as np

        allowed = self._allowed_combinations()
        # Of the designs that it stands for the first one has the first value of every axis without conditions.
        positions = np.unravel_index(int(allowed.argmax()), allowed.shape)
        return int(np.ravel_multi_index(positions, self._sizes)) if allowed.any() else None

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    @cached_property
    def _law_of(self) -> dict[str, Law]:
        return {law.key: law for law in self.laws if law.path is None}

    @cached_property
    def _axis_of(self) -> dict[str, int]:
        return {axis.name: place for place, axis in enumerate(self.axes)}

    def positions(self, index: int) -> tuple[int, ...]:
        """Index of the value of each axis, for the design with this index. Raises IndexError if there is no such
        design.
        """
        if not 0 <= index < len(self):
            raise IndexError(index)
        if self.rows is not None:
            return self.rows[index]
        positions = []
        for size in reversed(self._sizes):
            index, position = divmod(index, size)
            positions.append(position)
        return tuple(reversed(positions))

    def along(self, index: int, place: int) -> Iterator[tuple[Value, int]]:
        """Pairs (value of the axis number `place`, index of a design): the other designs of the space that differ from
        the design `index` only in this axis.
        """
        own = self.positions(index)
        for position, value in enumerate(self.axes[place].values):
            other = self.index_of((*own[:place], position, *own[place + 1 :]))
            if position != own[place] and other is not None:
                yield value, other

    def index_of(self, positions: tuple[int, ...]) -> int | None:
        """Index of the design with these indexes of axis values: the inverse of `positions`. None if the design sheet
        has no such design; of several equal rows, the first counts.
        """
        if self.rows is not None:
            return self._index_of_row.get(positions)
        index = 0
        for size, position in zip(self._sizes, positions, strict=True):
            index = index * size + position
        return index

    @cached_property
    def _index_of_row(self) -> dict[tuple[int, ...], int]:
        return {row: index for index, row in reversed([*enumerate(self.rows or ())])}

    def _axis_values(self, positions: Sequence[int]) -> dict[str, Value]:
        return {axis.name: axis.values[position] for axis, position in zip(self.axes, positions, strict=True)}

    def _law_outcomes(self, positions: Sequence[int]) -> list[tuple[Law, _Outcome]]:
        return [(law, self._outcome(law.formula, positions)) for law in self.laws]

    def _outline(self, positions: Sequence[int], found: Sequence[tuple[Law, _Outcome]]) -> Outline:
        """Settings of a design. `found` has the outcome of each law for this design."""
        problem = next((f"{law.key}: {outcome.problem}" for law, outcome in found if outcome.problem), "")
        if problem:
            return Outline((), problem=problem)
        excluded_by, problem = self._exclusion(positions)
        if problem:
            return Outline((), problem=problem)
        settings = [axis.settings[position] for axis, position in zip(self.axes, positions, strict=True)]
        from_laws = [(law.path, _as_written(outcome.value)) for law, outcome in found if law.path is not None]
        return Outline((*itertools.chain.from_iterable(settings), *from_laws), excluded_by)

    def _outcome(self, formula: Formula, positions: Sequence[int]) -> _Outcome:
        """Outcome of a formula in a design: its value, or the reason why there is none."""
        place = tuple([positions[axis] for axis in formula.axes])
        found = formula.kept.get(place)
        if found is None:
            found = self._computed(formula.expression, positions)
            if formula.is_kept:
                formula.kept[place] = found
        return found

    def _computed(self, expression: Expression, positions: Sequence[int]) -> _Outcome:
        values: dict[str, Value] = {}
        for name in expression.names:
            if name in self._axis_of:
                axis = self._axis_of[name]
                values[name] = self.axes[axis].values[positions[axis]]
            else:
                outcome = self._outcome(self._law_of[name].formula, positions)
                if outcome.problem:
                    return outcome
                values[name] = outcome.value
        try:
            return _Outcome(expression.value(values))
        except ExpressionError as error:
            return _Outcome(0, str(error))

    def _exclusion(self, positions: Sequence[int]) -> tuple[str, str]:
        """Pair (text of the violated constraint, reason why a constraint cannot be computed). It describes the first
        constraint of `constraints_before` that is violated or cannot be computed. At least one element is ''.
        """
        for constraint in self.constraints_before:
            outcome = self._outcome(constraint, positions)
            if outcome.problem:
                return "", f"{constraint.expression.text}: {outcome.problem}"
            if not outcome.value:
                return constraint.expression.text, ""
        return "", ""

    def _holds(self, formula: Formula, is_constraint: bool, positions: Sequence[int]) -> bool:
        outcome = self._outcome(formula, positions)
        return not outcome.problem and bool(outcome.value or not is_constraint)

    def _conditions(self) -> Iterator[tuple[Formula, bool]]:
        """Pairs (formula, True if it is a constraint), for all laws, and for all constraints that are checked before
        evaluation.

        A constraint rules out a design that violates it. A law rules out a design for which the law cannot be computed.
        """
        yield from ((law.formula, False) for law in self.laws)
        yield from ((constraint, True) for constraint in self.constraints_before)

    def _is_allowed(self, positions: Sequence[int]) -> bool:
        return all(self._holds(formula, is_constraint, positions) for formula, is_constraint in self._conditions())

    def _allowed_combinations(self) -> "NDArray[np.bool_]":
        """Array with one dimension per axis of the space: True for each combination of axis values that meets all
        conditions (`_conditions`).

        If no condition depends on an axis, the array has length 1 along this axis. The single element then stands for
        all values of the axis. Each condition is computed only over the axes on which it depends.
        """
        import numpy as np  # the rules of the pipeline read spaces too

        used = {axis for formula, _ in self._conditions() for axis in formula.axes}
        allowed = np.ones([size if axis in used else 1 for axis, size in enumerate(self._sizes)], bool)
        for formula, is_constraint in self._conditions():
            ranges = [range(size if axis in formula.axes else 1) for axis, size in enumerate(self._sizes)]
            held = [self._holds(formula, is_constraint, positions) for positions in itertools.product(*ranges)]
            allowed &= np.array(held, bool).reshape([len(places) for places in ranges])
        return allowed


def _as_written(value: Value) -> Value:
    """Value of a law as a file would contain it: 16, not 16.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


__all__ = ["ODDS", "RESULTS", "USES", "Axis", "Design", "Formula", "Law", "Network", "Space", "Value"]


def _unmet_text(expression: Expression, values: Mapping[str, Value], results: Mapping[str, float]) -> str:
    """Constraint as text; '' if the values and results of a design meet it. A constraint that cannot be checked
    counts as violated.
    """
    missing = next((name for name in expression.names if name not in values and name not in results), "")
    if missing:
        return f"{expression.text}: {missing} is not known"
    try:
        return "" if expression.value({**values, **results}) else expression.text
    except ExpressionError as error:
        return f"{expression.text}: {error}"
