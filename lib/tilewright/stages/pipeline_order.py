"""Whether the stages of a pipeline stand in an order that fits: by what they take, give, collect and return."""

from dataclasses import dataclass

from tilewright.errors import KeyPath, Problem
from tilewright.stages.base import Same, Stage, Types, type_name
from tilewright.stages.entries import Entry
from tilewright.stages.flow import Flow, hands_on
from tilewright.stages.items import OrderBatch
from tilewright.stages.places import problem_at


@dataclass(frozen=True)
class Placed:
    """A stage, or its class where its parameters are wrong, and where it is written."""

    kind: type[Stage]
    entry: Entry
    stage: Stage | None = None


def what_does_not_fit(placed: list[Placed], flow: Flow) -> list[Problem]:
    """What is wrong with the order of stages; one kind of fault at a time, since others often only follow from it."""
    return (
        _items_that_do_not_fit(placed, flow) or _results_that_do_not_fit(placed, flow) or _missing_predecessors(placed)
    )


def _items_that_do_not_fit(placed: list[Placed], flow: Flow) -> list[Problem]:
    """The first stage that is given something else than it takes; those behind it often only follow from it."""
    current: type | None = flow.takes
    giver = flow.giver
    for index, item in enumerate(placed):
        kind = item.kind
        if current is None:
            place = item.entry.place or placed[index - 1].entry.place
            return [problem_at(place, f"{kind.name()} cannot come after {giver}, which ends a pipeline")]
        if not issubclass(current, kind.takes):
            remedy = _remedy(kind.takes, index, placed, giver, flow)
            message = f"{kind.name()} takes {type_name(kind.takes)}, but gets {type_name(current)} from {giver}{remedy}"
            return [problem_at(item.entry.place or _nearest_place(placed, index), message)]
        if kind.exports and current is OrderBatch:
            message = f"{kind.name()} would write a file for every batch of loop orders; put it before {giver}"
            return [problem_at(item.entry.place or _nearest_place(placed, index), message)]
        if kind.gives is not Same:
            current, giver = kind.gives, kind.name()
    if current is not None:
        last = " or ".join(flow.ends_with)
        message = f"the pipeline ends with {type_name(current)} from {giver}: the last stage must be {last}"
        return [problem_at((), message)]
    return []


def _remedy(wanted: type, index: int, placed: list[Placed], giver: str, flow: Flow) -> str:
    """Which stage would give what is missing, and whether it only stands in the wrong place."""
    later = [item.kind.name() for item in placed[index + 1 :] if hands_on(item.kind, wanted)]
    if later:
        return f"; move {later[0]} before it"
    givers = flow.gives(wanted)
    earlier = [item.kind.name() for item in placed[:index] if hands_on(item.kind, wanted)]
    if earlier:
        return f"; it belongs before {giver}"
    return f"; put {' or '.join(givers)} before it" if givers else ""


def _results_that_do_not_fit(placed: list[Placed], flow: Flow) -> list[Problem]:
    if not placed or placed[-1].kind.gives is not None:
        return []
    found = []
    current: type = placed[-1].kind.returns
    giver = placed[-1].kind.name()
    for index in range(len(placed) - 2, -1, -1):
        kind = placed[index].kind
        if current is not Same and not _is_one_of(current, kind.collects):
            got = f"but gets {type_name(current)} back from {giver}"
            message = f"{kind.name()} collects {type_name(kind.collects)}, {got}"
            belongs = _where_it_belongs(kind.collects, placed[:index])
            found.append(problem_at(placed[index].entry.place or _nearest_place(placed, index), message + belongs))
        if kind.returns is not Same:
            current, giver = kind.returns, kind.name()
    if flow.collects and not _is_one_of(current, flow.collects) and not found:
        message = f"the pipeline must end in {type_name(flow.collects)}, but {giver} yields {type_name(current)}"
        found.append(problem_at(_nearest_place(placed, 0), message))
    return found


def _where_it_belongs(collects: Types, above: list[Placed]) -> str:
    makers = [item.kind for item in above if item.kind.returns is not Same and _is_one_of(item.kind.returns, collects)]
    return f"; move it before {makers[-1].name()}" if makers else ""


def _is_one_of(kind: type, allowed: Types) -> bool:
    return issubclass(kind, allowed)


def _missing_predecessors(placed: list[Placed]) -> list[Problem]:
    found = []
    for index, item in enumerate(placed):
        # A subclass of a stage is one of its kind.
        before = [base.__name__ for other in placed[:index] for base in other.kind.__mro__]
        if item.kind.needs and not any(name in before for name in item.kind.needs):
            later = any(other.kind.name() in item.kind.needs for other in placed[index + 1 :])
            wanted = " or ".join(item.kind.needs)
            message = f"{item.kind.name()} needs {wanted} before it" + (", which comes later" if later else "")
            found.append(problem_at(item.entry.place or _nearest_place(placed, index), message))
    return found


def _nearest_place(placed: list[Placed], index: int) -> KeyPath:
    """Where a problem of a default stage is told: at the nearest entry that a person wrote."""
    others = sorted(range(len(placed)), key=lambda other: abs(other - index))
    return next((placed[other].entry.place for other in others if placed[other].entry.place), ())
