"""A design space: a base accelerator, its axes, laws and constraints, and the options of its searches."""

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
    """Options of designs of several cores: of the search on a core, of how networks are cut, of the search for an
    allocation and of schedules."""

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Options that exclude each other."""
        yield from CnSearchOptions.conflicts(self, wrong)
        yield from TilingOptions.conflicts(self, wrong)

    def without_effect(self) -> dict[str, str]:
        """Options of other engines; the search for an allocation has a use for every seed."""
        return {name: why for name, why in super().without_effect().items() if name != "seed"}

    def stated(self) -> JsonObject:
        """The options as plain data."""
        tiling = self.part(TilingOptions).stated()
        return tiling | {name: encode(value) for name, value in self.as_dict().items() if name not in tiling}


SpaceOptions = SearchOptions | SystemOptions
KINDS: dict[bool, type[SpaceOptions]] = {False: SearchOptions, True: SystemOptions}
"""Whether designs are of several cores -> their options."""
DEFAULTS: dict[bool, Mapping[str, Any]] = {
    False: {"model": CORRECTED.name, "exploit_data_locality": True},
    True: {},
}
"""Where a space differs from a configuration: designs are compared, and without them no memory is worth its size."""


def stated_options(options: SpaceOptions) -> JsonObject:
    """Options as plain data."""
    if isinstance(options, SystemOptions):
        return options.stated()
    found: dict[str, Any] = encode(options)
    return found


MOST_KEPT = 2**16
"""Values of a formula that are kept, rather than computed for each design."""
_TRIED = 1000
"""Designs that are looked at one by one before all are counted."""


@dataclass(frozen=True)
class Network:
    """A network that every design runs."""

    name: str
    file: Path


@dataclass(frozen=True)
class Design:
    """One accelerator of a space."""

    index: int
    """Position in the space, from 0; the last axis varies fastest."""
    values: dict[str, Value]
    """Values of each axis, then of each name that laws define, in the order of the file; names of laws that cannot be
    computed are left out."""
    hardware: dict[str, Any]
    """The content of its hardware file; {} where `problem` says that there is none. Designs share what they have in
    common: it must not be written to."""
    excluded_by: str = ""
    """The constraint that it does not meet before anything is evaluated; '' where it meets all."""
    problem: str = ""
    """Why it is no accelerator at all: a law that cannot be computed, such as a division by zero."""


@dataclass(frozen=True)
class Outline:
    """What a design sets in the base, without the hardware file that this makes."""

    settings: tuple[tuple[KeyPath, Any], ...]
    """Settings of axes, then of laws; () where `problem` says that there is no hardware file."""
    excluded_by: str = ""
    problem: str = ""
    """Both as in a design."""


@dataclass(frozen=True)
class Axis:
    """What is varied."""

    name: str
    values: tuple[Value, ...]
    settings: tuple[tuple[tuple[KeyPath, Any], ...], ...]
    """Settings of each value in the base."""


@dataclass(frozen=True)
class Formula:
    """An expression, and what its value depends on."""

    expression: Expression
    axes: tuple[int, ...]
    """Places of the axes that it depends on, also through the names of laws."""
    is_kept: bool
    """Whether there are few combinations of their values, so that each is computed once."""
    kept: dict[tuple[int, ...], "_Outcome"] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Law:
    """A value that follows from others."""

    key: str
    """Name of the law, or the dotted path that it sets, as the file says it."""
    formula: Formula
    path: KeyPath | None
    """What it sets in the base; None for a name."""


@dataclass(frozen=True)
class _Outcome:
    """The value of a formula for some values of its axes, or why it has none."""

    value: Value
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Space:
    """Designs by their index, and what they are evaluated on."""

    name: str
    file: str
    """'' for one that was given as a dict."""
    networks: tuple[Network, ...]
    mapping: Path | None
    """None: one entry `default` with the default links of operands; spatial mappings are generated."""
    options: SpaceOptions
    objectives: tuple[str, ...]
    """Objectives among RESULTS: what the Pareto front is over."""
    shard_designs: int | None
    base: dict[str, Any]
    """The content of the hardware file of the base; of several cores with all core files under `core_files`."""
    axes: tuple[Axis, ...]
    laws: tuple[Law, ...]
    constraints_before: tuple[Formula, ...]
    """Constraints that hold or not before anything is evaluated."""
    constraints_after: tuple[Formula, ...]
    """Constraints on results."""
    rows: tuple[tuple[int, ...], ...] | None = None
    """Place of the value of each design of a sheet in each axis; None: all combinations."""
    row_names: tuple[str, ...] = ()
    """Names of designs in the sheet; () where it gives none."""

    @property
    def is_of_systems(self) -> bool:
        """Whether designs are of several cores."""
        return "cores" in self.base

    @property
    def value_names(self) -> tuple[str, ...]:
        """Columns of a table of designs: axes, then names of laws."""
        return (*(axis.name for axis in self.axes), *(law.key for law in self.laws if law.path is None))

    def __len__(self) -> int:
        """Designs before any constraint."""
        return math.prod(self._sizes) if self.rows is None else len(self.rows)

    def design(self, index: int) -> Design:
        """The design at an index, which depends on nothing else. Raises IndexError."""
        positions = self.positions(index)
        values = self._axis_values(positions)
        found = self._law_outcomes(positions)
        values |= {law.key: outcome.value for law, outcome in found if law.path is None and not outcome.problem}
        outline = self._outline(positions, found)
        hardware = {} if outline.problem else with_values(self.base, outline.settings)
        return Design(index, values, hardware, outline.excluded_by, outline.problem)

    def values(self, index: int) -> dict[str, Value]:
        """The values of the design at an index, as constraints use them. Raises IndexError."""
        positions = self.positions(index)
        outcomes = ((law, self._outcome(law.formula, positions)) for law in self.laws if law.path is None)
        named = {law.key: outcome.value for law, outcome in outcomes if not outcome.problem}
        return self._axis_values(positions) | named

    @cached_property
    def known_values(self) -> dict[str, tuple[Value, ...]]:
        """Column of `value_names` -> the values that designs can have there, whichever designs there are in a table;
        without laws of which there are too many."""
        found = {axis.name: axis.values for axis in self.axes}
        for law in self.laws:
            if law.path is None and law.formula.is_kept:
                ranges = [range(size if axis in law.formula.axes else 1) for axis, size in enumerate(self._sizes)]
                outcomes = [self._outcome(law.formula, positions) for positions in itertools.product(*ranges)]
                found[law.key] = tuple(outcome.value for outcome in outcomes if not outcome.problem)
        return found

    def outline(self, index: int) -> Outline:
        """What the design at an index sets in the base. Raises IndexError."""
        positions = self.positions(index)
        return self._outline(positions, self._law_outcomes(positions))

    def design_name(self, index: int) -> str:
        """What a design is called: by the sheet, or after the space and its index. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.row_names[index] if self.row_names else f"{self.name}-{index:0{len(str(len(self)))}}"

    def unmet(self, values: Mapping[str, Value], results: Mapping[str, float]) -> str:
        """The first constraint that the results of a design on a network do not meet; '' if all are met.

        `values` are those of the design, `results` are named by RESULTS; a result that is missing meets nothing.
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
        """Designs that meet all constraints before evaluation and whose laws can be computed."""
        if self.rows is not None:
            return sum(map(self._is_allowed, self.rows))
        allowed = self._allowed_combinations()
        return int(allowed.sum()) * (len(self) // allowed.size)

    def size_text(self) -> str:
        """How many designs there are, for people to read before anything is evaluated."""
        allowed, networks = self.count_allowed(), count_of(len(self.networks), "network")
        left = "" if allowed == len(self) else f", of which {allowed:,} meet the constraints before evaluation"
        return f"{count_of(len(self), 'design')}{left}, on {networks}"

    def first_allowed(self) -> int | None:
        """The index of the first of those; None if there is none."""
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
        """Place of the value in each axis that the design at an index has. Raises IndexError."""
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
        """What a design sets, of whose laws the outcomes were `found`."""
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
        """The value of a formula in a design."""
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
        """(the first constraint that is not met, or '', the problem of one that cannot be computed, or '')."""
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
        """Every formula that a design can fail by, and whether it is a constraint."""
        yield from ((law.formula, False) for law in self.laws)
        yield from ((constraint, True) for constraint in self.constraints_before)

    def _is_allowed(self, positions: Sequence[int]) -> bool:
        return all(self._holds(formula, is_constraint, positions) for formula, is_constraint in self._conditions())

    def _allowed_combinations(self) -> "NDArray[np.bool_]":
        """Which combinations of values are allowed; axes without conditions have one place, which stands for all.

        Each condition is computed for the axes that it depends on alone.
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
    """A value of a law as a file would have it: 16, not 16.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


__all__ = ["ODDS", "RESULTS", "USES", "Axis", "Design", "Formula", "Law", "Network", "Space", "Value"]
