"""Base class of stages, and their execution, each inside the one before it.

A pipeline is a list of stages, outermost first. A stage gets an item (a network, a layer, a batch of loop orders) and
`rest`, the stages after it. It calls `rest` with items of its own and yields results: those that `rest` returns, or
results computed from them. So items go down the list, results come up, and only requested results are kept.

Errors in a user's stages are reported with their file and line, as a fault of the input and not of tilewright.
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
    """A stage handed on, or yielded, an object of another type than it declares."""


def problem_of_stage(error: Exception, kind: type, name: str, made_items: bool) -> Problem | None:
    """Problem in the code of a user's stage; None if the error describes itself, or if it occurred in a stage of
    tilewright whose items did not come from the user's stage.
    """
    if _is_told_by_tilewright(error):
        return None
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not made_items and _raised_by_tilewright_below(error, file):
        return None
    return problem_in_code(error, Path(file) if file else None, path=name)


def _is_told_by_tilewright(error: Exception) -> bool:
    """Whether the error is one of tilewright whose message is sufficient."""
    return type(error).__module__.startswith("tilewright.") and not isinstance(error, WrongTypeError)


def problem_in_code(error: Exception, file: Path | None, shown: str = "", path: str = "") -> Problem:
    """Problem in a user's file, at the innermost line of that file in the traceback."""
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
    """Whether a stage of tilewright was running below the user's innermost line."""
    below = False
    for frame in traceback.extract_tb(error.__traceback__):
        if file is not None and frame.filename == file:
            below = False
        elif Path(frame.filename).is_relative_to(STAGES) and frame.name not in ("guarded", "__call__"):
            below = True
    return below


def _is_users(filename: str, file: Path | None) -> bool:
    """Whether a file is the stage's own file or one that it imports from the working folder or below; False for
    libraries.
    """
    path = Path(filename)
    if file is not None and path == file:
        return True
    library = any(part in ("site-packages", "dist-packages") for part in path.parts)
    return not library and not path.is_relative_to(PACKAGE) and path.is_relative_to(Path.cwd())


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


class Same:
    """Marker in `gives` and `returns` of a stage that passes on the type that it gets."""


Types = type | tuple[type, ...]


@dataclass(frozen=True)
class Stage(ABC):
    """One step of a pipeline; a subclass is a frozen dataclass whose fields are its parameters.

    Parameters that are also options of a search (`lpf_limit`, `model`, ...) take the values of the run unless the
    pipeline says otherwise.
    """

    takes: ClassVar[type] = object
    """Type of the items that the stage gets."""
    gives: ClassVar[type | None] = Same
    """Type of the items that the stage hands to the stages after it; None for a last stage."""
    collects: ClassVar[Types] = object
    """Type of the results that the stages after it return."""
    returns: ClassVar[type] = Same
    """Type of the results that the stage yields."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of stages, at least one of which must come earlier in the pipeline."""
    takes_unmapped: ClassVar[bool] = False
    """Whether a layer that the stage gets must not have a spatial mapping yet."""
    observes: ClassVar[bool] = False
    """Whether the stage only observes the results that pass. Such a stage also sees results from the store."""
    exports: ClassVar[bool] = False
    """Whether the stage writes files into the folder of exports."""
    stands_for: ClassVar[str] = ""
    """Name of the corresponding stage in zigzag-dse."""

    @classmethod
    def name(cls) -> str:
        """Name of the stage in a pipeline: its class, with the dotted path for a user's stage."""
        return cls.__name__ if is_own(cls) else f"{cls.__module__}.{cls.__qualname__}"

    @abstractmethod
    def run(self, item: Any, rest: "Rest") -> Iterator[Any]:
        """Yield the results for `item`; `rest(item)` runs the stages after this one and yields their results."""

    def inner(self) -> "tuple[Stage, ...]":
        """Stages that run inside this one, outermost first; they and their code are part of its identity."""
        return ()

    def order_total(self, item: Any) -> int | None:
        """Number of loop orders that a temporal mapper will try for `item`, for progress; None if it is not known."""
        return None


class Writer(Stage):
    """Stage that writes files whose names follow from its position in the pipeline."""

    @abstractmethod
    def written(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern of the files that the stage writes below the folder of exports."""


class Change(Stage):
    """Stage that hands on one changed item and passes all results on."""

    @abstractmethod
    def change(self, item: Any) -> Any:
        """Item for the stages after this one."""

    def run(self, item: Any, rest: "Rest") -> Iterator[Any]:
        """Yield the results for the changed item."""
        yield from rest(self.change(item))


def _ignore(told: Any) -> None:
    """Ignore progress and notices."""


@dataclass(frozen=True)
class Control:
    """Control of how a pipeline runs; it never changes a result."""

    threads: int = 1
    """Number of layers that are searched at the same time."""
    store: "Store | None" = None
    """Store of the results of earlier searches."""
    exports: Path = Path("exports")
    """Folder into which stages write files."""
    show_progress: bool = False
    """Whether the progress of long searches is shown on stderr."""
    on_record: Callable[[Any], None] | None = None
    """Function that is called with the record of each layer when its search is finished."""
    on_notices: Callable[[Sequence[str]], None] = _ignore
    """Function that is called with notices on unusual input if a stage fails: the input may be the cause."""
    advance: Callable[[int], None] = _ignore
    """Function that is called with the number of loop orders that were just tried."""
    stop: threading.Event | None = None
    """Event that is set when the search must end."""
    layers: frozenset[str] | None = None
    """Names of layers: only the problems of these layers of a network are mapped; None: all."""


def _the_item(item: Any) -> Iterable[Any]:
    return (item,)


@dataclass(frozen=True)
class Rest:
    """Stages after a stage. Calling it with an item runs them and yields their results.

    A pipeline that is cut before its last stage yields the items for the missing stages.
    """

    stages: tuple[Stage, ...]
    control: Control = field(default_factory=Control)
    end: Callable[[Any], Iterable[Any]] = _the_item

    def __call__(self, item: Any) -> Iterator[Any]:
        """Yield the results for `item`. Raises WrongTypeError if the next stage takes another type."""
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
    """Rest for a user's stage: wrong items are reported at the line that hands them on."""

    expected: type = object

    def __call__(self, item: Any) -> Iterator[Any]:
        """Yield the results for `item`. Raises WrongTypeError unless it has the type that the stage declares."""
        if not isinstance(item, self.expected):
            raise WrongTypeError(f"handed on {type_name(type(item))} instead of {type_name(self.expected)}")
        return super().__call__(item)


def guarded(stage: Stage, item: Any, rest: Rest) -> Iterator[Any]:
    """Results of a user's stage; the types of its items and results are checked against its declaration.

    Raises InputError if the code of the stage fails. An error in a later stage of tilewright is passed on, unless that
    stage got items that the user's stage made.
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
    """Whether a stage belongs to tilewright, not to a user."""
    return kind.__module__.startswith("tilewright.")


def type_name(kind: Types) -> str:
    """Text of a type, or of the types of a tuple."""
    return " or ".join(one.__name__ for one in kind) if isinstance(kind, tuple) else kind.__name__
