"""Base class of stages, and execution of a list of stages: each stage runs the stages after it.

A pipeline is a list of stages, outermost first. A stage gets an item (a network, a layer, a batch of loop orders) and
`rest`, which stands for the stages after it. The stage calls `rest` with items that it makes; `rest` yields their
results. The stage yields these results, or results that it computes from them. Items therefore go down the list, and
results come up.

Errors in stages of the user are reported as wrong input, with file and line, not as bugs of tilewright.
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
    """Error for an object of a wrong type. A stage passed on an item, or yielded a result, although the stage does not
    declare the type of this object.
    """


def problem_of_stage(error: Exception, kind: type, name: str, made_items: bool) -> Problem | None:
    """Problem that reports an error in the code of a stage of the user. The result is None in two cases:

    * The error is of a class of tilewright (except WrongTypeError), whose message already explains the error.
    * The error comes from a stage of tilewright that the user's stage called, and `made_items` is False.

    `made_items` is False if the user's stage declares that it hands on items of the type that it gets.
    """
    if _is_told_by_tilewright(error):
        return None
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not made_items and raised_by_tilewright_below(error, file):
        return None
    return problem_in_code(error, Path(file) if file else None, path=name)


def _is_told_by_tilewright(error: Exception) -> bool:
    """True if the error is of a class of tilewright, except WrongTypeError. The message of such an error already
    explains the error to the user.
    """
    return type(error).__module__.startswith("tilewright.") and not isinstance(error, WrongTypeError)


def problem_in_code(error: Exception, file: Path | None, shown: str = "", path: str = "") -> Problem:
    """Problem that reports an error in code of the user. The problem has the line of the innermost call in the
    traceback that is in `file` or in another file of the user. If the error is in `file` itself, the problem gives
    `shown` as the name of the file. `path` is the path of the problem in the input.
    """
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
        message += f" (in {inside}:{last.lineno}, called from here)"
    name = shown if file is not None and Path(deepest.filename) == file and shown else _short(deepest.filename)
    return Problem(message, name, deepest.lineno or 0, path=path)


def raised_by_tilewright_below(error: Exception, file: str | None) -> bool:
    """True if the error comes from a stage of tilewright that the code in the user's `file` called. The traceback then
    has code of this stage after the last line of `file`. If `file` is None, code of a stage of tilewright anywhere in
    the traceback is enough.
    """
    below = False
    for frame in traceback.extract_tb(error.__traceback__):
        if file is not None and frame.filename == file:
            below = False
        elif Path(frame.filename).is_relative_to(STAGES) and frame.name not in ("guarded", "__call__"):
            below = True
    return below


def _is_users(filename: str, file: Path | None) -> bool:
    """True if the user wrote the file: it is the file of the stage, or another file in the working folder. False for
    files of installed libraries.
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
    """Marker for `gives` or `returns` of a stage. `gives = Same`: the stage hands on items of the type that it gets.
    `returns = Same`: the stage yields results of the type that it gets.
    """


Types = type | tuple[type, ...]


@dataclass(frozen=True)
class Stage(ABC):
    """Step of a pipeline. A subclass is a frozen dataclass whose fields are the parameters of the stage.

    If a parameter is also an option of the search (`lpf_limit`, `model`, ...), its default is the value of this option
    in the run.
    """

    takes: ClassVar[type] = object
    """Type of the items that the stage gets."""
    gives: ClassVar[type | None] = Same
    """Type of the items that the stage hands to the stages after it; None for a last stage."""
    collects: ClassVar[Types] = object
    """Type of the results that this stage gets from the stages after it."""
    returns: ClassVar[type] = Same
    """Type of the results that the stage yields."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of stages. At least one of them must come earlier in the pipeline."""
    takes_unmapped: ClassVar[bool] = False
    """True if the stage takes only layers without a spatial mapping."""
    observes: ClassVar[bool] = False
    """True if the stage only observes results and passes them on. Such a stage also gets results that were read from
    the store.
    """
    exports: ClassVar[bool] = False
    """True if the stage writes files into the folder of exports."""
    stands_for: ClassVar[str] = ""
    """Name of the corresponding stage in zigzag-dse, or in Stream for a stage of the multi-core flow; '' if there is
    none.
    """

    @classmethod
    def name(cls) -> str:
        """Name of the stage in a pipeline: the name of the class, or its dotted path for a stage of a user."""
        return cls.__name__ if is_own(cls) else f"{cls.__module__}.{cls.__qualname__}"

    @abstractmethod
    def run(self, item: Any, rest: "Rest") -> Iterator[Any]:
        """Yield the results for `item`; `rest(item)` runs the stages after this one and yields their results."""

    def inner(self) -> "tuple[Stage, ...]":
        """Stages that run inside this stage, outermost first. A stored result of this stage is used again only if these
        stages and their code are unchanged.
        """
        return ()

    def order_total(self, item: Any) -> int | None:
        """Number of loop orders that a temporal mapper will try for `item`, for the progress bar; None if not known."""
        return None


class Writer(Stage):
    """Stage that writes files. The file names depend on the position of the stage in the pipeline."""

    @abstractmethod
    def written(self, above_workload: bool, above_sum: bool) -> str:
        """Pattern for the paths of the written files, such as `<layer>_complete.json`, relative to the folder of
        exports. `above_workload` is true if the stage comes before a stage Workload in the pipeline. `above_sum` is
        true if it comes before a stage Sum.
        """


class Change(Stage):
    """Stage that changes the item. It passes on all results unchanged."""

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
    """Settings for the execution of a pipeline. Only `layers` and `is_network` change results."""

    threads: int = 1
    """Number of layers that are searched at the same time."""
    store: "Store | None" = None
    """Store of the results of earlier searches."""
    exports: Path = Path("exports")
    """Folder into which stages write files."""
    show_progress: bool = False
    """True if the progress of long searches is shown on stderr."""
    on_record: Callable[[Any], None] | None = None
    """Function that gets the record of each layer when the search of the layer is finished."""
    on_notices: Callable[[Sequence[str]], None] = _ignore
    """Function that gets notices on unusual input. It is called even if a stage fails, because unusual input can be the
    cause.
    """
    advance: Callable[[int], None] = _ignore
    """Function that gets the number of loop orders that were tried since its previous call."""
    stop: threading.Event | None = None
    """Event that is set when the search must end."""
    layers: frozenset[str] | None = None
    """Names of the layers to map. None means all layers of the network."""
    is_network: bool = True
    """True if the layers run one after another as a network, whose totals are sums over the layers. If False, each
    layer is searched for its own objective, even if the objective is the EDP of a network.
    """


def _the_item(item: Any) -> Iterable[Any]:
    return (item,)


@dataclass(frozen=True)
class Rest:
    """Stages after one stage of the pipeline. A call with an item runs these stages and yields their results. The
    function `end` gets the items that the last stage hands on, and yields results for them; by default, it yields the
    items.
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
    """Stages after a stage of the user. If the user's stage hands on an item of a wrong type, the error names the line
    in the code of the user's stage.
    """

    expected: type = object

    def __call__(self, item: Any) -> Iterator[Any]:
        """Yield the results that the stages after the user's stage give for `item`. Raises WrongTypeError if `item`
        does not have the type that the user's stage declares in `gives`.
        """
        if not isinstance(item, self.expected):
            raise WrongTypeError(f"handed on {type_name(type(item))} instead of {type_name(self.expected)}")
        return super().__call__(item)


def guarded(stage: Stage, item: Any, rest: Rest) -> Iterator[Any]:
    """Results of a stage of the user. Raises InputError if an item or a result has a type that the stage does not
    declare, or if the code of the stage fails. An error in a later stage of tilewright is raised unchanged, except if
    the user's stage made the items of the later stage.
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
    """True if the class of a stage is part of tilewright, and not written by a user."""
    return kind.__module__.startswith("tilewright.")


def type_name(kind: Types) -> str:
    """Name of a type, or names of the types in a tuple."""
    return " or ".join(one.__name__ for one in kind) if isinstance(kind, tuple) else kind.__name__
