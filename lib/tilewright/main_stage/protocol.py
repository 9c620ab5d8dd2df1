"""Form of stages in zigzag-dse and Stream: the stage above makes a stage, and the stage yields pairs.

A stage is made from keywords and the list of stages below it. It makes the first stage of this list, which gets the
rest of the list. It yields pairs of a cost model evaluation (CME) and further information. The form is that of
`zigzag.stages.stage` and `zigzag.stages.main` of zigzag-dse 3.9.1.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Pair = tuple[Any, Any]
"""Pair (CME, further information that stages added)."""
StageCallable = Callable[..., "Stage"]
"""Function or class that makes a stage, from a list of such makers and keywords."""


class Stage(metaclass=ABCMeta):
    """Base class of stages, from which user's stages inherit.

    Raises ValueError if a leaf has a stage below it. Raises ValueError if another stage has none.
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
        """Yield pairs (CME, further information)."""

    def __iter__(self) -> Iterator[Pair]:
        return self.run()

    def is_leaf(self) -> bool:
        """True if the stage is a leaf, which has no stage below it."""
        return False
