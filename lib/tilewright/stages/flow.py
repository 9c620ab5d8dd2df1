"""What the pipelines of a flow are made of: their stages, their default, what goes in and what ends them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.search.options import CoreSearchOptions
from tilewright.stages.catalogue import Catalogue
from tilewright.stages.entries import Entry


def _no_entries(onnx: bool) -> list[Entry]:
    return []


@dataclass(frozen=True, eq=False)
class Flow:
    """A kind of pipeline."""

    catalogue: Catalogue
    default_entries: Callable[[CoreSearchOptions, bool], list[Entry]]
    """The default pipeline; the second argument is True for ONNX models."""
    takes: type
    """What the first stage is given."""
    giver: str
    """Who gives that, for people."""
    problem: type | None = None
    """What the parsers make; None: there are none."""
    parser_entries: Callable[[bool], list[Entry]] = _no_entries
    """The parsers that a full list may leave out."""
    collects: tuple[type, ...] = ()
    """What results of the first stage must be; () for anything."""

    @property
    def ends_with(self) -> tuple[str, ...]:
        """The stages of which one ends a pipeline."""
        return tuple(name for name in self.catalogue.names if self.catalogue.stage_class(name).gives is None)

    def gives(self, wanted: type) -> list[str]:
        """Names of the stages that hand on items of a type."""
        kinds = [self.catalogue.stage_class(name) for name in self.catalogue.names]
        return [kind.name() for kind in kinds if hands_on(kind, wanted)]


def hands_on(kind: Any, wanted: type) -> bool:
    """True if a stage makes items of a type, rather than passing on what it is given."""
    gives = kind.gives
    return isinstance(gives, type) and issubclass(gives, wanted)
