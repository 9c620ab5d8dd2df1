"""Form of stages in zigzag-dse and Stream.

A stage is made from keywords and from the list of the stages below it. The stage makes the first stage of this list,
and passes the rest of the list to it. Each stage yields pairs of a cost model evaluation (CME) and further information.
`zigzag.stages.stage` and `zigzag.stages.main` of zigzag-dse 3.9.1 define this form.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Pair = tuple[Any, Any]
"""Pair (CME, further information that stages added)."""
StageCallable = Callable[..., "Stage"]
"""Function or class that makes a stage. It takes keywords, and a list of functions or classes of the same kind that
make the stages below.
"""


class Stage(metaclass=ABCMeta):
    """Base class of stages, from which the user's stages inherit.

    A leaf is a stage that has no stage below it. Raises ValueError if a leaf is made with a stage below it. Raises
    ValueError also if a stage that is not a leaf is made without a stage below it.
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
        """True if the stage is a leaf. A leaf has no stage below it."""
        return False
