"""Stages in the form of zigzag-dse and Stream: each stage is made by the stage above it and yields pairs.

A stage is made with the list of stages below it and with keywords. It makes the first stage of this list with the rest
of the list, and yields pairs of a cost model evaluation (CME) and further information. The form is the same as in
`zigzag.stages.stage` and `zigzag.stages.main` of zigzag-dse 3.9.1.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Pair = tuple[Any, Any]
"""(CME, further information that stages have added)."""
StageCallable = Callable[..., "Stage"]
"""Maker of a stage: a class, or any callable that takes a list of such makers and keywords."""


class Stage(metaclass=ABCMeta):
    """Base class of stages, from which user's stages inherit.

    Raises ValueError if a leaf has a stage below it, or if any other stage has no stage below it.
    """

    def __init__(self, list_of_callables: Sequence[StageCallable], **kwargs: Any) -> None:
        self.kwargs: dict[str, Any] = kwargs
        self.list_of_callables = list_of_callables
        if self.is_leaf() and list_of_callables:
            raise ValueError(f"{type(self).__name__} is a leaf, but there are stages after it")
        if not self.is_leaf() and not list_of_callables:
            raise ValueError(f"{type(self).__name__} is not a leaf, but there is no stage after it")

    @abstractmethod
    def run(self) -> Iterator[Pair]:
        """Yield the results."""

    def __iter__(self) -> Iterator[Pair]:
        return self.run()

    def is_leaf(self) -> bool:
        """Whether the stage is a leaf, that is, needs no stage below it."""
        return False
