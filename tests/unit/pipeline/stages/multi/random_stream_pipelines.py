"""Random pipelines of the stages that Stream's documentation names: the result of the flow in order, or a refusal.

Order of reading stages, spelling of names and omitted stages do not matter. A pipeline that runs gives the schedule of
the default pipeline with the same objective for mappings. `python -m
tests.unit.pipeline.stages.multi.random_stream_pipelines --count 200 --seed 1` tries many.
"""

import argparse
import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError
from tilewright.base.steps import MULTI
from tilewright.pipeline.stages import Control, MultiCoreResult
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.multi.pipeline import multi_pipeline, run_whole

from tests.unit.cli.multi_core import write_network
from tests.unit.pipeline.stages.multi.multi_cases import GA, OPTIONS, descriptions

READERS = ("StreamONNXModelParser", "AcceleratorParser", "SystemMappingParser")
SEARCH = ("GenerateCNWorkloadHybrid", "IntraCoreMapping", "InterCoreMapping")
OF_ONE_CORE = ("Loma", "CostModel", "WorkloadStage", "MinimalLatency", "SimpleSave")
INNER = ("SpatialMappingGenerator", "MinimalX", "Loma", "CostModel")
"""The pipeline of a mapping inside IntraCoreMapping; `MinimalX` stands for a reduction."""
OBJECTIVES = {"MinimalLatency": "latency", "MinimalEnergy": "energy", "MinimalEDP": "EDP"}


def spelling(draw: random.Random, name: str) -> str:
    """A random name of a stage: tilewright's or one of Stream's."""
    listed = CATALOGUES[MULTI].listed.get(name)
    names = [name, *(listed.also if listed else ())]
    return draw.choice(names) + draw.choice(("", "", "Stage"))


def random_pipeline(draw: random.Random) -> tuple[list[Any], str]:
    """(stages, name of the stage that reduces mappings) of a random pipeline; half of the lists are in order."""
    readers = draw.choice(((), (*draw.sample(READERS[:2], 2), READERS[2]), draw.sample(READERS, len(READERS))))
    reduction = draw.choice(("", *OBJECTIVES))
    stages: list[Any] = [*readers, *SEARCH]
    if draw.random() < 0.5:
        for _ in range(draw.randint(1, 2)):
            place, change = draw.randrange(len(stages)), draw.choice(("move", "repeat", "leave out", "other flow"))
            if change == "other flow":
                stages.insert(place, draw.choice(OF_ONE_CORE))
            elif change == "repeat":
                stages.insert(draw.randrange(len(stages)), stages[place])
            else:
                moved = stages.pop(place)
                if change == "move":
                    stages.insert(draw.randrange(len(stages) + 1), moved)
    inner = [draw.choice((one, f"{one}Stage")) for one in INNER if one != "MinimalX"]
    inner.insert(1, reduction)
    costs = {"parameters": {"pipeline": inner}}
    return [
        {"stage": spelling(draw, name), **costs} if name == "IntraCoreMapping" and reduction else spelling(draw, name)
        for name in stages
    ], reduction


def run(network: Path, pipeline: Any, objective: str = OPTIONS.objective) -> MultiCoreResult:
    """The result of a pipeline for a network on two cores. Raises InputError if the pipeline is refused."""
    whole = multi_pipeline(pipeline, replace(OPTIONS, objective=objective), GA, sliced=False)
    return run_whole(whole, descriptions(network), Control())


def expected(network: Path, reduction: str) -> MultiCoreResult:
    """The result of the stages in order.

    Raises AssertionError if the costs of this result differ from those of a run by the reduction's objective.
    """
    if not reduction:
        return run(network, None)
    inner = [reduction if one == "MinimalX" else one for one in INNER]
    found = run(network, [SEARCH[0], {"stage": SEARCH[1], "parameters": {"pipeline": inner}}, SEARCH[2]])
    by_objective = run(network, None, OBJECTIVES[reduction])
    assert costs_of(found) == costs_of(by_objective), reduction
    return found


def costs_of(found: MultiCoreResult) -> list[tuple[int, float]]:
    """Cycles and energy of each class on each core."""
    return [(row.total2_cycles, row.on_core_energy_pj) for rows in found.core_costs.values() for row in rows]


def outcome(network: Path, pipeline: Any) -> tuple[MultiCoreResult | None, InputError | None]:
    """(result, None) of a pipeline, or (None, error) if it is refused."""
    try:
        return run(network, pipeline), None
    except InputError as error:
        return None, error


def tried(count: int, seed: int) -> Counter[str]:
    """Counts of the pipelines that ran with the right result and of those that were refused.

    Raises AssertionError for a wrong result, and for a refusal that does not name the pipeline.
    """
    draw, outcomes = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        network = write_network(Path(folder))
        right = {name: expected(network, name) for name in ("", *OBJECTIVES)}
        for _ in range(count):
            pipeline, reduction = random_pipeline(draw)
            found, refusal = outcome(network, pipeline)
            if found is None:
                assert refusal
                assert all("pipeline" in str(problem) for problem in refusal.problems), (pipeline, str(refusal))
            else:
                for name in ("latency_cycles", "energy_pj", "summary"):
                    assert getattr(found, name) == getattr(right[reduction], name), (pipeline, name)
            outcomes["refused" if found is None else "run"] += 1
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(dict(tried(arguments.count, arguments.seed)))
