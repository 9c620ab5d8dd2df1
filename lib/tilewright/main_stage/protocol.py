"""Stages and their entry point in the form of zigzag-dse and Stream: generators over pairs, each made by the one above.

A stage is made with the stages after it and with keywords, makes the first of these stages with the rest of them, and
yields pairs of a cost model evaluation (CME) and further information. The form is that of `zigzag.stages.stage` and
`zigzag.stages.main` of zigzag-dse 3.9.1.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Pair = tuple[Any, Any]
"""A CME and what a stage says beside it."""
StageCallable = Callable[..., "Stage"]
"""What makes a stage: a class, or anything that is called with a list of the same kind and keywords."""


class Stage(metaclass=ABCMeta):
    """Base of stages; a stage of a user's own inherits from it.

    Raises ValueError where a stage that is no leaf has none after it, or a leaf has some.
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
        """True for a stage that needs none after it."""
        return False
