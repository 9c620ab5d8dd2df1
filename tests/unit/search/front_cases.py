"""Fronts of small layers, searched in one prepared problem."""

from types import SimpleNamespace
from typing import Any

from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.layer_front import FrontSearch, FrontSource
from tilewright.pipeline.stages.temporal import Best
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import NO_FLOORS
from tilewright.search.exact.staircase import Staircase
from tilewright.search.front import BoundedFront


def layer_front(prepared: PreparedProblem, allocation: str = "greedy", **limits: Any) -> BoundedFront | None:
    """Front of one spatial mapping; None if no mapping fits."""
    mapper = Best(objective="EDP", allocation=allocation, front=True, **limits)

    def source(objective: str, pj_a_cycle: float, known: Staircase | None = None) -> Any:
        choice = Choice(0, 1, 0.0, prepared.layer, prepared.core, NO_FLOORS, lambda: prepared)
        return FrontSource([choice.priced(pj_a_cycle)], lambda _: SimpleNamespace(unrolling=()), lambda _: prepared)

    found = mapper.search(iter(source("EDP", 0.0).choices), 1, (), Control())
    return None if found is None else FrontSearch(source, mapper, 1, (), Control()).run(found, source("EDP", 0.0))
