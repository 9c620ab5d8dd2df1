"""Stages: what one is, and how stages run, each inside the one before it.

A pipeline is a list of stages, outermost first. A stage is given an item (a network, a layer, a batch of loop orders)
and `rest`, the stages after it. It calls `rest` with items of its own and yields results: those that come back, or what
it makes of them. So items go down the list, results come up, and nothing is kept that nobody asked for.

Errors in stages that a user wrote: told with their file and line, as a fault of the input and not of tilewright.
"""

import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.base.errors import InputError, Problem

if TYPE_CHECKING:
    from tilewright.search.store import Store


PACKAGE = Path(__file__).resolve().parents[2]
STAGES = Path(__file__).resolve().parent


class WrongTypeError(TypeError):
    """A stage handed on, or yielded, something else than it declares."""


def problem_of_stage(error: Exception, kind: type, name: str, made_items: bool) -> Problem | None:
    """What went wrong in the code of a user's stage; None where that is told by itself, or in a stage of tilewright
    below which was not given items that the user's stage made."""
    if _is_told_by_tilewright(error):
        return None
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not made_items and _raised_by_tilewright_below(error, file):
        return None
    return problem_in_code(error, Path(file) if file else None, path=name)


def _is_told_by_tilewright(error: Exception) -> bool:
    """True for errors that say themselves what is the matter."""
    return type(error).__module__.startswith("tilewright.") and not isinstance(error, WrongTypeError)


def problem_in_code(error: Exception, file: Path | None, shown: str = "", path: str = "") -> Problem:
    """What went wrong in a user's file, at the innermost line of it that was being run."""
    if isinstance(error, SyntaxError) and error.filename:
        name = shown if file is not None and Path(error.filename) == file else _short(error.filename)
        return Problem(f"{type(error).__name__}: {error.msg}", name, error.lineno or 0)
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(frame.filename, file)]
    if not own:
        return Problem(message, shown or (_short(str(file)) if file else ""), path=path)
    deepest = own[-1]
    last = frames[-1]
    if last is not deepest and Path(last.filename).is_relative_to(PACKAGE) and not isinstance(error, WrongTypeError):
        inside = Path(last.filename).relative_to(PACKAGE.parent)
        message += f" (in {inside}:{last.lineno}, with what it was given here)"
    name = shown if file is not None and Path(deepest.filename) == file and shown else _short(deepest.filename)
    return Problem(message, name, deepest.lineno or 0, path=path)


def _raised_by_tilewright_below(error: Exception, file: str | None) -> bool:
    """True if a stage of tilewright was running below the user's innermost line."""
    below = False
    for frame in traceback.extract_tb(error.__traceback__):
        if file is not None and frame.filename == file:
            below = False
        elif Path(frame.filename).is_relative_to(STAGES) and frame.name not in ("guarded", "__call__"):
            below = True
    return below


def _is_users(filename: str, file: Path | None) -> bool:
    """True for the stage's own file and what it imports beside or below the working folder, False for libraries."""
    path = Path(filename)
    if file is not None and path == file:
        return True
    library = any(part in ("site-packages", "dist-packages") for part in path.parts)
    return not library and not path.is_relative_to(PACKAGE) and path.is_relative_to(Path.cwd())


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


class Same:
    """Stands in `gives` and `returns` of a stage that passes on the type that it is given."""


Types = type | tuple[type, ...]


@dataclass(frozen=True)
class Stage(ABC):
    """One step of a pipeline; a subclass is a frozen dataclass whose fields are its parameters.

    Parameters that are also options of a search (`lpf_limit`, `model`, ...) take the values of the run unless the
    pipeline says otherwise.
    """

    takes: ClassVar[type] = object
    """Type of the items that it is given."""
    gives: ClassVar[type | None] = Same
    """Type of the items that it hands to the stages after it; None if it is the last stage."""
    collects: ClassVar[Types] = object
    """Type of the results that come back from the stages after it."""
    returns: ClassVar[type] = Same
    """Type of the results that it yields."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of stages of which one must stand before it."""
    takes_unmapped: ClassVar[bool] = False
    """True if a layer that it is given must not have a spatial mapping yet."""
    observes: ClassVar[bool] = False
    """True if it only looks at the results that pass. Such a stage also sees results that come from the store."""
    exports: ClassVar[bool] = False
    """True if it writes files into the folder of exports."""
    stands_for: ClassVar[str] = ""
    """What it corresponds to in zigzag-dse."""

    @classmethod
    def name(cls) -> str:
        """What a pipeline calls it: its class, with the dotted path for one that a user wrote."""
        return cls.__name__ if is_own(cls) else f"{cls.__module__}.{cls.__qualname__}"

    @abstractmethod
    def run(self, item: Any, rest: "Rest") -> Iterator[Any]:
        """Yield the results for `item`; `rest(item)` runs the stages after this one and yields theirs."""

    def inner(self) -> "tuple[Stage, ...]":
        """Stages that run inside this one, outermost first; they and their code are part of what it is."""
        return ()

    def order_total(self, item: Any) -> int | None:
        """How many loop orders a temporal mapper will look at for `item`, for progress; None if nobody knows."""
        return None


class Writer(Stage):
    """A stage that writes files whose names are known from where it stands."""

    @abstractmethod
    def written(self, above_workload: bool, above_sum: bool) -> str:
        """The files below the folder of exports, as a pattern."""


class Change(Stage):
    """A stage that hands on one changed item and passes all results on."""

    @abstractmethod
    def change(self, item: Any) -> Any:
        """The item that the stages after this one get."""

    def run(self, item: Any, rest: "Rest") -> Iterator[Any]:
        """The results for the changed item."""
        yield from rest(self.change(item))


def _ignore(told: Any) -> None:
    """Nobody looks at progress, or at notices."""


@dataclass(frozen=True)
class Control:
    """How a pipeline runs; never changes a result."""

    threads: int = 1
    """Layers searched at the same time."""
    store: "Store | None" = None
    """Results of earlier searches."""
    exports: Path = Path("exports")
    """Folder in which stages write files."""
    show_progress: bool = False
    """Show the progress of long searches on stderr."""
    on_record: Callable[[Any], None] | None = None
    """Told the record of each layer that was searched, when it is finished."""
    on_notices: Callable[[Sequence[str]], None] = _ignore
    """Told what is legal but unusual where a stage ends with what is wrong: it may be what is behind that."""
    advance: Callable[[int], None] = _ignore
    """Function that is called with numbers of loop orders that were looked at."""
    stop: threading.Event | None = None
    """Set when the search is to end."""
    layers: frozenset[str] | None = None
    """Names of layers: of a network only the problems that one of them poses are mapped; None: all."""


def _the_item(item: Any) -> Iterable[Any]:
    return (item,)


@dataclass(frozen=True)
class Rest:
    """The stages after a stage. Calling it with an item runs them and yields their results.

    A pipeline that is cut off before its last stage yields the items that would have gone there.
    """

    stages: tuple[Stage, ...]
    control: Control = field(default_factory=Control)
    end: Callable[[Any], Iterable[Any]] = _the_item

    def __call__(self, item: Any) -> Iterator[Any]:
        """The results for `item`. Raises WrongTypeError if the next stage takes something else."""
        if not self.stages:
            return iter(self.end(item))
        stage = self.stages[0]
        if not isinstance(item, stage.takes):
            raise WrongTypeError(f"{stage.name()} takes {type_name(stage.takes)}, not {type_name(type(item))}")
        rest = Rest(self.stages[1:], self.control, self.end)
        if is_own(type(stage)):
            return stage.run(item, rest)
        return guarded(stage, item, rest)


@dataclass(frozen=True)
class _CheckedRest(Rest):
    """The rest as a user's stage gets it: wrong items are told in the line that hands them on."""

    expected: type = object

    def __call__(self, item: Any) -> Iterator[Any]:
        """The results for `item`. Raises WrongTypeError unless it is what the stage declares to hand on."""
        if not isinstance(item, self.expected):
            raise WrongTypeError(f"handed on {type_name(type(item))} instead of {type_name(self.expected)}")
        return super().__call__(item)


def guarded(stage: Stage, item: Any, rest: Rest) -> Iterator[Any]:
    """The results of a user's stage; what it hands on and yields is checked to be what it declares.

    Raises InputError where the code of the stage fails. What fails in a stage of tilewright below is passed on, unless
    it was given items that the user's stage made.
    """
    expected: type = type(item) if stage.gives is Same else stage.gives or object
    try:
        results = stage.run(item, _CheckedRest(rest.stages, rest.control, rest.end, expected))
        if not hasattr(results, "__iter__"):
            raise WrongTypeError(f"run returned {results!r}; it has to yield results")
        for result in results:
            if stage.returns is not Same and not isinstance(result, stage.returns):
                wanted, got = type_name(stage.returns), type_name(type(result))
                raise WrongTypeError(f"run yielded {got} instead of {wanted}")
            yield result
    except Exception as error:
        problem = problem_of_stage(error, type(stage), stage.name(), stage.gives is not Same)
        if problem is None:
            raise
        raise InputError([problem]) from error


def run_stages(stages: Sequence[Stage], item: Any, control: Control | None = None) -> Iterator[Any]:
    """Run stages on an item and yield their results."""
    return Rest(tuple(stages), control or Control())(item)


def is_own(kind: type[Stage]) -> bool:
    """True for a stage of tilewright, False for one that a user wrote."""
    return kind.__module__.startswith("tilewright.")


def type_name(kind: Types) -> str:
    """A type, or the types of a tuple, as a person would say it."""
    return " or ".join(one.__name__ for one in kind) if isinstance(kind, tuple) else kind.__name__
