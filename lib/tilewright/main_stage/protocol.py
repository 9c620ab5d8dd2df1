"""Stages and their entry point in the form of zigzag-dse and Stream: generators of pairs, each made by the stage above.

A stage is made with the list of stages after it and with keywords. It makes the first of these stages with the rest of
the list, and yields pairs of a cost model evaluation (CME) and further information. The form is that of
`zigzag.stages.stage` and `zigzag.stages.main` of zigzag-dse 3.9.1.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Pair = tuple[Any, Any]
"""(CME, further information of the stages)."""
StageCallable = Callable[..., "Stage"]
"""Maker of a stage: a class, or any callable with a list of such makers and keywords."""


class Stage(metaclass=ABCMeta):
    """Base of stages; a user's stage inherits from it.

    Raises ValueError if a stage that is no leaf has no stage after it, or if a leaf has one.
    """

    def __init__(self, list_of_callables: Sequence[StageCallable], **kwargs: Any) -> None:
        self.kwargs: dict[str, Any] = kwargs
        self.list_of_callables = list_of_callables
        if self.is_leaf() and list_of_callables:
            raise ValueError(f"{type(self).__name__} is a leaf, and there are stages after it")
        if not self.is_leaf() and not list_of_callables:
            raise ValueError(f"{type(self).__name__} is no leaf, and there is no stage after it")

    @abstractmethod
    def run(self) -> Iterator[Pair]:
        """Yield the results."""

    def __iter__(self) -> Iterator[Pair]:
        return self.run()

    def is_leaf(self) -> bool:
        """Whether the stage needs no stage after it."""
        return False
