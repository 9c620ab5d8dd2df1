"""Stages of tilewright as classes for scripts, under their names in zigzag-dse and Stream, and the class MainStage."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from tilewright.base.stage_table import STAGES
from tilewright.main_stage.protocol import Pair, Stage, StageCallable

_OWN = frozenset(dir(Stage)) | {"kwargs", "list_of_callables", "ours", "needs_none_after"}
"""Names of attributes of stages, which keywords of a script must not overwrite."""


class BuiltIn(Stage):
    """Stage of tilewright in a script. Consecutive stages of tilewright run together, and exchange batches of loop
    orders.
    """

    ours: ClassVar[str] = ""
    """Name of the stage in tilewright."""
    needs_none_after: ClassVar[bool] = False

    def __init__(self, list_of_callables: Sequence[StageCallable], **kwargs: Any) -> None:
        super().__init__(list_of_callables, **kwargs)
        vars(self).update({name: value for name, value in kwargs.items() if name not in _OWN})

    def run(self) -> Iterator[Pair]:
        """Yield the results of this stage. Raises InputError for mistakes in stages and keywords."""
        from tilewright.main_stage.chain import run_chain

        kind = next(one for one in type(self).__mro__ if "ours" in vars(one))
        yield from run_chain([kind, *self.list_of_callables], self.kwargs)

    def is_leaf(self) -> bool:
        """True if this stage must be the last one of a pipeline."""
        return self.needs_none_after


ENDS = ("CostModel", "InterCoreMapping")


def _names() -> Iterator[tuple[str, str]]:
    """Pairs (name in scripts, name in tilewright), one for each name of each stage."""
    taken: set[str] = set()
    for stage in STAGES:
        for name in (stage.name, *stage.also):
            if name not in taken:
                taken.add(name)
                yield f"{name}Stage", stage.name


def _class(name: str, ours: str) -> type[BuiltIn]:
    doc = f"Class with which a script uses the stage {ours} of tilewright."
    return type(
        name, (BuiltIn,), {"ours": ours, "needs_none_after": ours in ENDS, "__doc__": doc, "__module__": __name__}
    )


CLASSES = {name: _class(name, ours) for name, ours in _names()}
"""Classes of tilewright's stages, by their name in scripts."""


class MainStage:
    """Entry point of a script: a list of stages, outermost first, and the keywords that they read."""

    def __init__(self, list_of_callables: Iterable[StageCallable], **kwargs: Any) -> None:
        self.list_of_callables = list(list_of_callables)
        self.kwargs = kwargs

    def run(self) -> Any:
        """List of the pairs (CME, further information) that the outermost stage yields. A CME is a cost model
        evaluation.

        On several cores, the result is a pair of lists, because scripts for Stream expect this form. The first list has
        the evaluations. The second list has the further information of each evaluation. Raises InputError for mistakes
        in stages and keywords, and for an error in the code of a user's stage.
        """
        from tilewright.main_stage.checks import check_keywords
        from tilewright.main_stage.own import new_session
        from tilewright.main_stage.plan import is_of_several_cores, our_name, planned

        check_keywords(self.list_of_callables, self.kwargs)
        new_session()
        planned(self.list_of_callables, self.kwargs)  # reports stages in wrong positions before anything runs
        first, rest = self.list_of_callables[0], self.list_of_callables[1:]
        pairs = self._run_own(first, rest) if not our_name(first) else list(first(rest, **self.kwargs).run())
        if is_of_several_cores(self.list_of_callables):
            return [cme for cme, _ in pairs], [extra for _, extra in pairs]
        return pairs

    def _run_own(self, first: StageCallable, rest: Sequence[StageCallable]) -> list[Pair]:
        """Run `first`, the outermost stage of the script, which must be a user's stage. Returns the pairs (CME, further
        information) that `first` yields.
        """
        from tilewright.main_stage.plan import own_stage

        return list(own_stage(first, rest, self.kwargs).generate(dict(self.kwargs)))

    def pipeline(self) -> list[Any]:
        """Value of the configuration key `pipeline` that has the same effect as the list of stages.

        Raises InputError for mistakes in the script, and for a user's stage, which has no counterpart in a
        configuration.
        """
        from tilewright.main_stage.bridge import pipeline_of

        return pipeline_of(self.list_of_callables, self.kwargs)
