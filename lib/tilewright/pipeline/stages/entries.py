"""Entries of the key `pipeline`: a full list of stages, or edits of the default pipeline.

The class `Flow` describes a kind of pipeline (single-core, multi-core, and so on).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.base.errors import KeyPath, Problem, nearest_name
from tilewright.pipeline.stages.base import Stage
from tilewright.pipeline.stages.catalogue import Catalogue
from tilewright.pipeline.stages.places import problem_at
from tilewright.search.options import CoreSearchOptions

EDIT_KEYS = {
    "replace": ("replace", "stage", "parameters"),
    "insert": ("insert", "before", "after", "parameters"),
    "drop": ("drop",),
    "set": ("set", "parameters"),
}
"""Keys that an edit of the default pipeline can have, by kind of edit."""
STAGE_KEYS = ("stage", "parameters")
FORMS = (
    "NAME, {stage: NAME, parameters: {...}}, {replace: NAME, stage: NAME}, {insert: NAME, before: NAME}, "
    "{insert: NAME, after: NAME}, {drop: NAME}, {set: NAME, parameters: {...}}"
)
StageValue = str | Stage | type[Stage]


@dataclass(frozen=True)
class Entry:
    """Stage of a pipeline as the user writes it: a name, a dotted path, or (in Python) a class or an object."""

    stage: StageValue
    parameters: Any = field(default_factory=dict)
    place: KeyPath = ()
    """Path of this stage's list element in the user's value of `pipeline`, as keys and list indices; () for an
    unchanged stage of the default pipeline.
    """

    def title(self, catalogue: Catalogue) -> str:
        """Name of the stage."""
        return _title(self.stage, catalogue)

    @property
    def parameter_place(self) -> KeyPath:
        """Path of the entry's parameters in the value of `pipeline`, as keys and list indices; () for an unchanged
        stage of the default pipeline.
        """
        return (*self.place, "parameters") if self.place else ()


def _title(stage: StageValue, catalogue: Catalogue) -> str:
    if isinstance(stage, str):
        return catalogue.canonical_name(stage) or stage
    return stage.name()


def read_entries(value: Any, default: Sequence[Entry], catalogue: Catalogue) -> tuple[list[Entry], list[Problem]]:
    """Pair (entries of a pipeline, errors). `value` is a list of stages, or a list of edits of `default`. `catalogue`
    has the names of stages.
    """
    if not isinstance(value, list | tuple):
        return [], [
            problem_at((), "must be a list of stages, or a list of edits of the default pipeline", repr(value)[:40])
        ]
    if not value:
        return [], [problem_at((), "is empty: for the default pipeline, leave out this key")]
    problems: list[Problem] = []
    edits = [index for index, item in enumerate(value) if _edit_of(item)]
    if not edits:
        return [entry for i, item in enumerate(value) if (entry := _stage_entry(item, i, problems))], problems
    entries = list(default)
    for index, item in enumerate(value):
        if index in edits:
            _apply(item, index, entries, catalogue, problems)
        else:
            message = (
                "is a stage in a list of edits: give either a full list of stages or only edits of the default list"
            )
            problems.append(problem_at((index,), message, repr(item)[:60]))
    return entries, problems


def _edit_of(item: Any) -> str:
    return next((kind for kind in EDIT_KEYS if kind in item), "") if isinstance(item, Mapping) else ""


def _stage_entry(item: Any, index: int, problems: list[Problem]) -> Entry | None:
    if _is_stage_value(item):
        return Entry(item, {}, (index,))
    if not isinstance(item, Mapping) or not _is_stage_value(item.get("stage")):
        nearest = ""
        if isinstance(item, Mapping):
            known = [*STAGE_KEYS, *EDIT_KEYS]
            nearest = next((near for key in item if key not in known and (near := nearest_name(str(key), known))), "")
        problems.append(problem_at((index,), "not an entry of a pipeline", repr(item)[:60], FORMS, nearest))
        return None
    _check_keys(item, index, STAGE_KEYS, problems)
    return Entry(item["stage"], item.get("parameters") or {}, (index,))


def _is_stage_value(value: Any) -> bool:
    is_class = isinstance(value, type) and issubclass(value, Stage)
    return is_class or isinstance(value, Stage) or (isinstance(value, str) and bool(value))


def _check_keys(item: Mapping[str, Any], index: int, known: tuple[str, ...], problems: list[Problem]) -> None:
    for key in item:
        if key not in known:
            nearest = nearest_name(str(key), known)
            allowed = "" if nearest else ", ".join(known)
            problems.append(problem_at((index, str(key)), "unknown key", allowed=allowed, nearest=nearest))


def _apply(
    item: Mapping[str, Any], index: int, entries: list[Entry], catalogue: Catalogue, problems: list[Problem]
) -> None:
    """Apply the edit `item`, which is number `index` in the list of edits, to the list `entries`. The list is changed
    in place. Errors in the edit are added to `problems`.
    """
    kind = _edit_of(item)
    _check_keys(item, index, EDIT_KEYS[kind], problems)
    parameters = item.get("parameters") or {}
    if kind == "insert":
        _insert(item, index, entries, catalogue, problems)
        return
    places = _places_of(item[kind], (index, kind), entries, catalogue, problems)
    if kind == "replace" and not _is_stage_value(item.get("stage")):
        problems.append(problem_at((index, "stage"), "required key is missing: the stage that replaces the old stage"))
    elif kind == "set" and not parameters:
        problems.append(problem_at((index, "parameters"), "required key is missing: the parameters to set"))
    elif kind == "drop":
        for place in reversed(places):
            del entries[place]
    else:
        for place in places:
            if kind == "replace":
                entries[place] = Entry(item["stage"], parameters, (index,))
            else:
                old = entries[place]
                both = {**old.parameters, **parameters} if isinstance(parameters, Mapping) else parameters
                entries[place] = Entry(old.stage, both, (index,))


def _insert(
    item: Mapping[str, Any], index: int, entries: list[Entry], catalogue: Catalogue, problems: list[Problem]
) -> None:
    sides = [side for side in ("before", "after") if side in item]
    if not _is_stage_value(item["insert"]):
        problems.append(problem_at((index, "insert"), "not a stage", repr(item["insert"])[:60]))
        return
    if len(sides) != 1:
        problems.append(
            problem_at((index,), "the position is missing: give either before or after", allowed="before, after")
        )
        return
    places = _places_of(item[sides[0]], (index, sides[0]), entries, catalogue, problems)
    if len(places) > 1:
        message = "occurs several times in the pipeline: name a stage that occurs one time, or give the full list"
        problems.append(problem_at((index, sides[0]), message, repr(item[sides[0]])))
    elif places:
        entry = Entry(item["insert"], item.get("parameters") or {}, (index,))
        entries.insert(places[0] + (sides[0] == "after"), entry)


def _places_of(
    name: Any, place: KeyPath, entries: list[Entry], catalogue: Catalogue, problems: list[Problem]
) -> list[int]:
    """Indices in `entries` of all stages called `name`. If there is no such stage, an error at the key path `place` is
    added to `problems`.
    """
    titles = list(dict.fromkeys(entry.title(catalogue) for entry in entries))
    wanted = _title(name, catalogue) if _is_stage_value(name) else ""
    found = [i for i, entry in enumerate(entries) if wanted and entry.title(catalogue) == wanted]
    if not found:
        nearest = nearest_name(wanted.removesuffix("Stage"), titles)
        message = "the pipeline has no such stage"
        problems.append(problem_at(place, message, repr(name)[:60], "" if nearest else ", ".join(titles), nearest))
    return found


def _no_entries(onnx: bool) -> list[Entry]:
    return []


@dataclass(frozen=True, eq=False)
class Flow:
    """Kind of pipeline: the stages that it can have, its default pipeline, and the types of its items and results."""

    catalogue: Catalogue
    default_entries: Callable[[CoreSearchOptions, bool], list[Entry]]
    """Function that returns the entries of the default pipeline. Its arguments are the options of the search, and a
    truth value: True if the network is an ONNX model.
    """
    takes: type
    """Type of the item for the first stage."""
    giver: str
    """Phrase for messages that names the source of the first stage's item."""
    problem: type | None = None
    """Type of the item that the parsers make; None if the flow has no parsers."""
    parser_entries: Callable[[bool], list[Entry]] = _no_entries
    """Function that returns the entries of the parsers; its argument is True if the network is an ONNX model. If a
    user's full list of stages has no parsers, these entries are added to it.
    """
    collects: tuple[type, ...] = ()
    """Allowed types of the results of the first stage; () for any type."""

    @property
    def ends_with(self) -> tuple[str, ...]:
        """Names of the stages that can be the last stage of a pipeline."""
        return tuple(name for name in self.catalogue.names if self.catalogue.stage_class(name).gives is None)

    def gives(self, wanted: type) -> list[str]:
        """Names of the stages that make items of the type `wanted` for the stages after them."""
        kinds = [self.catalogue.stage_class(name) for name in self.catalogue.names]
        return [kind.name() for kind in kinds if hands_on(kind, wanted)]


def hands_on(kind: Any, wanted: type) -> bool:
    """True if a stage makes items of the type `wanted`. False for a stage that only passes on the item that it gets."""
    gives = kind.gives
    return isinstance(gives, type) and issubclass(gives, wanted)
