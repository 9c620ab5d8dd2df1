"""The stages of tilewright as classes of a script, under every name that zigzag-dse and Stream give them, and the entry
point of a script.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from tilewright.base.stage_table import STAGES
from tilewright.main_stage.protocol import Pair, Stage, StageCallable

_OWN = frozenset(dir(Stage)) | {"kwargs", "list_of_callables", "ours", "needs_none_after"}
"""Attributes of stages that keywords do not become."""


class BuiltIn(Stage):
    """A stage of tilewright. Those that stand one after another in a script run together, in batches."""

    ours: ClassVar[str] = ""
    """What tilewright calls it."""
    needs_none_after: ClassVar[bool] = False

    def __init__(self, list_of_callables: Sequence[StageCallable], **kwargs: Any) -> None:
        super().__init__(list_of_callables, **kwargs)
        vars(self).update({name: value for name, value in kwargs.items() if name not in _OWN})

    def run(self) -> Iterator[Pair]:
        """What it and the stages after it yield. Raises InputError with everything that is wrong."""
        from tilewright.main_stage.chain import run_chain

        kind = next(one for one in type(self).__mro__ if "ours" in vars(one))
        yield from run_chain([kind, *self.list_of_callables], self.kwargs)

    def is_leaf(self) -> bool:
        """True for what ends a pipeline."""
        return self.needs_none_after


ENDS = ("CostModel", "InterCoreMapping")


def _names() -> Iterator[tuple[str, str]]:
    """(name in scripts, our name) of every stage."""
    taken: set[str] = set()
    for stage in STAGES:
        for name in (stage.name, *stage.also):
            if name not in taken:
                taken.add(name)
                yield f"{name}Stage", stage.name


def _class(name: str, ours: str) -> type[BuiltIn]:
    doc = f"{ours} of tilewright, as a stage of a script."
    return type(
        name, (BuiltIn,), {"ours": ours, "needs_none_after": ours in ENDS, "__doc__": doc, "__module__": __name__}
    )


CLASSES = {name: _class(name, ours) for name, ours in _names()}
"""Name in scripts -> class."""


class MainStage:
    """The entry point of a script: stages, outermost first, and the keywords that they read."""

    def __init__(self, list_of_callables: Iterable[StageCallable], **kwargs: Any) -> None:
        self.list_of_callables = list(list_of_callables)
        self.kwargs = kwargs

    def run(self) -> Any:
        """The pairs of CME and further information that the outermost stage yields, as a list.

        On several cores a list of evaluations and one of what is said beside them, as scripts for Stream unpack it.
        Raises InputError with everything that is wrong with stages and keywords, or in the code of a stage of a user's.
        """
        from tilewright.main_stage.checks import check_keywords
        from tilewright.main_stage.own import new_session
        from tilewright.main_stage.plan import is_of_several_cores, our_name, planned

        check_keywords(self.list_of_callables, self.kwargs)
        new_session()
        planned(self.list_of_callables, self.kwargs)  # what may not stand where is told before anything runs
        first, rest = self.list_of_callables[0], self.list_of_callables[1:]
        pairs = self._run_own(first, rest) if not our_name(first) else list(first(rest, **self.kwargs).run())
        if is_of_several_cores(self.list_of_callables):
            return [cme for cme, _ in pairs], [extra for _, extra in pairs]
        return pairs

    def _run_own(self, first: StageCallable, rest: Sequence[StageCallable]) -> list[Pair]:
        """What a stage of a user's yields that is the outermost."""
        from tilewright.main_stage.plan import own_stage

        return list(own_stage(first, rest, self.kwargs).generate(dict(self.kwargs)))

    def pipeline(self) -> list[Any]:
        """Stages as the value of `pipeline` of a configuration. Raises InputError for what has no counterpart."""
        from tilewright.main_stage.bridge import pipeline_of

        return pipeline_of(self.list_of_callables, self.kwargs)
