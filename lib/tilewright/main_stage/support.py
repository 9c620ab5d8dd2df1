"""Stages of zigzag-dse that scripts use, but that pipelines of tilewright do not need.

The results are the same as in zigzag-dse (`RunOptStages` and `GeneralParameterIteratorStage` of 2.4, `run_opt_stages`
of 3.9.1). The stages start no processes, because the searches of tilewright are compiled code.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tilewright.main_stage.protocol import Pair, Stage, StageCallable


class _Passing(Stage):
    """Base class of stages that pass their keywords to the stage below."""

    def below(self, **others: Any) -> Iterator[Pair]:
        """Results of the stages below. These stages get the keywords of this stage, together with the keywords in
        `others`.
        """
        return self.list_of_callables[0](self.list_of_callables[1:], **(self.kwargs | others)).run()


class RemoveExtraInfoStage(_Passing):
    """Stage that passes CMEs on, without further information."""

    def run(self) -> Iterator[Pair]:
        """Yield the CMEs of the stages below, each with None as its further information."""
        for cme, _ in self.below():
            yield cme, None


class CacheBeforeYieldStage(_Passing):
    """Stage that passes results on only after the stages below have yielded all results."""

    def run(self) -> Iterator[Pair]:
        """Yield all results of the stages below."""
        yield from list(self.below())


class MultiProcessingSpawnStage(_Passing):
    """Stage that passes all results on. In zigzag-dse, this stage starts processes; here, the stages below run in the
    same process.
    """

    def run(self) -> Iterator[Pair]:
        """Yield all results of the stages below."""
        yield from self.below()


class MultiProcessingGatherStage(MultiProcessingSpawnStage):
    """Stage that passes all results on. In zigzag-dse, this stage collects the results of processes; here, the stages
    below run in the same process.
    """


class SkipIfDumpExistsStage(_Passing):
    """Stage that passes all results on. If the dump file (`dump_filename_pattern` or `dump_folder`) already exists, the
    stage yields nothing and runs no stage below.
    """

    def __init__(
        self,
        list_of_callables: Sequence[StageCallable],
        *,
        dump_folder: str = "",
        dump_filename_pattern: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(list_of_callables, **kwargs)
        self.given = {"dump_folder": dump_folder, "dump_filename_pattern": dump_filename_pattern}

    def run(self) -> Iterator[Pair]:
        """Yield all results of the stages below, or none if the dump file already exists."""
        given = {name: value for name, value in self.given.items() if value}
        if any(Path(value.format_map(_Known(self.kwargs))).is_file() for value in given.values()):
            return
        yield from self.below(**given)


class _Known(dict[str, Any]):
    """Values of the fields of a pattern. Fields without a value stay in the pattern."""

    def __missing__(self, name: str) -> str:
        return "{" + name + "}"


class GeneralParameterIteratorStage(_Passing):
    """Stage that runs the stages below once for every combination of keyword values.

    `general_parameter_iterations` maps each keyword to its values. A key can also be a tuple of keywords that change
    together; its values are then tuples.

    The further information of each CME is a pair (choice, information of the stages below). The choice is a tuple with
    one entry for each key: a pair (keyword, value), or a tuple of such pairs if the key is a tuple of keywords.
    """

    def __init__(
        self,
        list_of_callables: Sequence[StageCallable],
        *,
        general_parameter_iterations: Mapping[Any, Iterable[Any]],
        **kwargs: Any,
    ) -> None:
        super().__init__(list_of_callables, **kwargs)
        self.iterations = general_parameter_iterations

    def run(self) -> Iterator[Pair]:
        """Yield the results for every combination of values. The first keyword changes slowest."""
        choices = [[_together(key, value) for value in values] for key, values in self.iterations.items()]
        for chosen in product(*choices):
            said = tuple(one[0] if len(one) == 1 else one for one in chosen)
            values = {name: value for one in chosen for name, value in one}
            for cme, extra in self.below(**values):
                yield cme, (said, extra)

    def provided(self) -> set[str]:
        """Keywords whose values this stage sets."""
        return {name for key in self.iterations for name in (key if isinstance(key, tuple | list) else (key,))}


def _together(key: Any, value: Any) -> tuple[tuple[str, Any], ...]:
    """Pairs (keyword, value) of keywords that change together."""
    return tuple(zip(key, value, strict=True)) if isinstance(key, tuple | list) else ((key, value),)


SUPPORT: dict[str, type[Stage]] = {
    kind.__name__: kind
    for kind in (
        *(RemoveExtraInfoStage, CacheBeforeYieldStage, MultiProcessingGatherStage, MultiProcessingSpawnStage),
        *(SkipIfDumpExistsStage, GeneralParameterIteratorStage),
    )
}
"""Classes of the stages in this module, by their name in scripts."""
