"""Design space: a base accelerator, its axes, laws and constraints, and the options of its searches."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import KeyPath, Problem, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import CORRECTED
from tilewright.designs.columns import ODDS, RESULTS, USES
from tilewright.designs.laws import Expression, ExpressionError, Value
from tilewright.hardware.text_edits import with_values
from tilewright.multicore.allocation.options import AllocationParameters
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.search.options import CnSearchOptions, SearchOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class SystemOptions(CnSearchOptions, TilingOptions, AllocationParameters, ScheduleSettings):
    """Options of designs with several cores: for the search on a core, the division of networks into computation nodes,
    the search for an allocation, and schedules.
    """

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Mistakes in options that exclude each other."""
        yield from CnSearchOptions.conflicts(self, wrong)
        yield from TilingOptions.conflicts(self, wrong)

    def without_effect(self) -> dict[str, str]:
        """Reason why an option has no effect, by name of the option: only other engines use it. `seed` is never
        included, because the search for an allocation always uses the seed.
        """
        return {name: why for name, why in super().without_effect().items() if name != "seed"}

    def stated(self) -> JsonObject:
        """Options as plain data."""
        tiling = self.part(TilingOptions).stated()
        return tiling | {name: encode(value) for name, value in self.as_dict().items() if name not in tiling}


SpaceOptions = SearchOptions | SystemOptions
KINDS: dict[bool, type[SpaceOptions]] = {False: SearchOptions, True: SystemOptions}
"""Type of the options; the key says whether designs have several cores."""
DEFAULTS: dict[bool, Mapping[str, Any]] = {
    False: {"model": CORRECTED.name, "exploit_data_locality": True, "bounds": True},
    True: {},
}
"""Defaults that differ from the defaults of `SearchOptions`. Without data locality, no memory of a design would pay for
its size. With bounds, the answer says how far the mappings of designs on the front can be from the best mappings.
"""


def stated_options(options: SpaceOptions) -> JsonObject:
    """Options as plain data."""
    if isinstance(options, SystemOptions):
        return options.stated()
    found: dict[str, Any] = encode(options)
    return found


MOST_KEPT = 2**16
"""Largest number of combinations of axis values for which the values of a formula are stored. If there are more, the
formula is computed again for each design.
"""
_TRIED = 1000
"""Number of designs that are tried one by one before all combinations are checked together."""


@dataclass(frozen=True)
class Network:
    """Network that every design runs."""

    name: str
    file: Path


@dataclass(frozen=True)
class Design:
    """Accelerator of a space."""

    index: int
    """Index of the design in the space, from 0; the last axis varies fastest."""
    values: dict[str, Value]
    """Values of the axes, then of the names that laws define, in the order of the file. Laws that cannot be computed
    are left out.
    """
    hardware: dict[str, Any]
    """Content of the hardware file of the design; {} if `problem` says why there is none. The caller must not change
    this dict, because designs share their common parts.
    """
    excluded_by: str = ""
    """Constraint before evaluation that the design does not meet; '' if it meets all of them."""
    problem: str = ""
    """Reason why there is no hardware file: a law cannot be computed, for example because of a division by zero."""


@dataclass(frozen=True)
class Outline:
    """Settings that turn the base into a design, without the hardware file that results from these settings."""

    settings: tuple[tuple[KeyPath, Any], ...]
    """Settings of axes, then settings of laws; () if `problem` says why there is no hardware file."""
    excluded_by: str = ""
    problem: str = ""
    """Reason why there is no hardware file. This field and `excluded_by` have the same meaning as in `Design`."""


@dataclass(frozen=True)
class Axis:
    """Axis: a quantity that varies between designs."""

    name: str
    values: tuple[Value, ...]
    settings: tuple[tuple[tuple[KeyPath, Any], ...], ...]
    """Settings in the base for each value of the axis."""


@dataclass(frozen=True)
class Formula:
    """Expression with the axes on which its value depends."""

    expression: Expression
    axes: tuple[int, ...]
    """Positions of the axes on which the expression depends, directly or through the names of laws."""
    is_kept: bool
    """Whether the value is stored for each combination of axis values. It is stored if there are few combinations."""
    kept: dict[tuple[int, ...], "_Outcome"] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Law:
    """Law: a value that follows from other values."""

    key: str
    """Name that the law defines, or dotted path that it sets, as written in the file."""
    formula: Formula
    path: KeyPath | None
    """Path in the base that the law sets; None if the law defines a name."""


@dataclass(frozen=True)
class _Outcome:
    """Value of a formula for a combination of axis values, or the reason why there is no value."""

    value: Value
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Space:
    """Design space: designs by their index, and the networks and options with which the designs are evaluated."""

    name: str
    file: str
    """Path of the space file; '' if the space was given as a dict."""
    networks: tuple[Network, ...]
    mapping: Path | None
    """Path of the mapping file. None stands for a mapping file with a single entry `default`, which has the default
    links of operands and no spatial mapping, so that spatial mappings are generated.
    """
    options: SpaceOptions
    objectives: tuple[str, ...]
    """Objectives of the Pareto front, chosen from RESULTS."""
    shard_designs: int | None
    base: dict[str, Any]
    """Content of the hardware file of the base. For several cores, it includes all core files under `core_files`."""
    axes: tuple[Axis, ...]
    laws: tuple[Law, ...]
    constraints_before: tuple[Formula, ...]
    """Constraints that are checked before any design is evaluated."""
    constraints_after: tuple[Formula, ...]
    """Constraints on results, which are checked after the evaluation."""
    rows: tuple[tuple[int, ...], ...] | None = None
    """Position, in each axis, of the value of each design of a design sheet; None if all combinations of values are
    designs.
    """
    row_names: tuple[str, ...] = ()
    """Names of the designs in the sheet; () if the sheet has no names."""

    @property
    def is_of_systems(self) -> bool:
        """Whether designs have several cores."""
        return "cores" in self.base

    @property
    def value_names(self) -> tuple[str, ...]:
        """Columns of a table of designs that hold values: axes, then the names that laws define."""
        return (*(axis.name for axis in self.axes), *(law.key for law in self.laws if law.path is None))

    def __len__(self) -> int:
        """Number of designs, whether or not they meet the constraints."""
        return math.prod(self._sizes) if self.rows is None else len(self.rows)

    def design(self, index: int) -> Design:
        """Design at an index. It depends only on the space and the index. Raises IndexError."""
        positions = self.positions(index)
        values = self._axis_values(positions)
        found = self._law_outcomes(positions)
        values |= {law.key: outcome.value for law, outcome in found if law.path is None and not outcome.problem}
        outline = self._outline(positions, found)
        hardware = {} if outline.problem else with_values(self.base, outline.settings)
        return Design(index, values, hardware, outline.excluded_by, outline.problem)

    def values(self, index: int) -> dict[str, Value]:
        """Values of the design at an index, as constraints use them. Raises IndexError."""
        positions = self.positions(index)
        outcomes = ((law, self._outcome(law.formula, positions)) for law in self.laws if law.path is None)
        named = {law.key: outcome.value for law, outcome in outcomes if not outcome.problem}
        return self._axis_values(positions) | named

    @cached_property
    def known_values(self) -> dict[str, tuple[Value, ...]]:
        """Values that designs of the space can have, by column of `value_names`, even if a table contains only some of
        the designs. Laws with too many values are left out.
        """
        found = {axis.name: axis.values for axis in self.axes}
        for law in self.laws:
            if law.path is None and law.formula.is_kept:
                ranges = [range(size if axis in law.formula.axes else 1) for axis, size in enumerate(self._sizes)]
                outcomes = [self._outcome(law.formula, positions) for positions in itertools.product(*ranges)]
                found[law.key] = tuple(outcome.value for outcome in outcomes if not outcome.problem)
        return found

    def outline(self, index: int) -> Outline:
        """Settings that turn the base into the design at an index. Raises IndexError."""
        positions = self.positions(index)
        return self._outline(positions, self._law_outcomes(positions))

    def design_name(self, index: int) -> str:
        """Name of a design: the name in the design sheet or, if the sheet has none, the name of the space and the
        index. Raises IndexError.
        """
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.row_names[index] if self.row_names else f"{self.name}-{index:0{len(str(len(self)))}}"

    def unmet(self, values: Mapping[str, Value], results: Mapping[str, float]) -> str:
        """First constraint that the results of a design on a network do not meet; '' if the results meet all
        constraints.

        `values` are the values of the design; `results` are the results by their names in RESULTS. If a constraint uses
        a result that is missing, the constraint is not met.
        """
        for constraint in self.constraints_after:
            expression = constraint.expression
            missing = next((name for name in expression.names if name not in values and name not in results), "")
            if missing:
                return f"{expression.text}: {missing} is not known"
            try:
                if not expression.value({**values, **results}):
                    return expression.text
            except ExpressionError as error:
                return f"{expression.text}: {error}"
        return ""

    def count_allowed(self) -> int:
        """Number of designs that meet all constraints before evaluation and whose laws can be computed."""
        if self.rows is not None:
            return sum(map(self._is_allowed, self.rows))
        allowed = self._allowed_combinations()
        return int(allowed.sum()) * (len(self) // allowed.size)

    def size_text(self) -> str:
        """Text for people with the number of designs. It is shown before any design is evaluated."""
        allowed, networks = self.count_allowed(), count_of(len(self.networks), "network")
        left = "" if allowed == len(self) else f", of which {allowed:,} meet the constraints before evaluation"
        return f"{count_of(len(self), 'design')}{left}, on {networks}"

    def first_allowed(self) -> int | None:
        """Index of the first design that meets all constraints before evaluation and whose laws can be computed; None
        if no design does.
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
        """Position, in each axis, of the value of the design at an index. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        if self.rows is not None:
            return self.rows[index]
        positions = []
        for size in reversed(self._sizes):
            index, position = divmod(index, size)
            positions.append(position)
        return tuple(reversed(positions))

    def _axis_values(self, positions: Sequence[int]) -> dict[str, Value]:
        return {axis.name: axis.values[position] for axis, position in zip(self.axes, positions, strict=True)}

    def _law_outcomes(self, positions: Sequence[int]) -> list[tuple[Law, _Outcome]]:
        return [(law, self._outcome(law.formula, positions)) for law in self.laws]

    def _outline(self, positions: Sequence[int], found: Sequence[tuple[Law, _Outcome]]) -> Outline:
        """Settings of a design; `found` has the laws of the design with their outcomes."""
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
        """Value of a formula in a design, or the reason why there is no value."""
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
        """(first constraint that is not met, or ''; reason why a constraint cannot be computed, or '')."""
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
        """(formula, whether it is a constraint) for each formula that can make a design invalid or exclude a design."""
        yield from ((law.formula, False) for law in self.laws)
        yield from ((constraint, True) for constraint in self.constraints_before)

    def _is_allowed(self, positions: Sequence[int]) -> bool:
        return all(self._holds(formula, is_constraint, positions) for formula, is_constraint in self._conditions())

    def _allowed_combinations(self) -> "NDArray[np.bool_]":
        """Array with one dimension per axis; True for allowed combinations of axis values. If no condition depends on
        an axis, the array has length 1 in this axis, which stands for all values.

        Each condition is computed only for the axes on which it depends.
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
    """Value of a law in the form in which it would be written in a file: 16, not 16.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


__all__ = ["ODDS", "RESULTS", "USES", "Axis", "Design", "Formula", "Law", "Network", "Space", "Value"]
