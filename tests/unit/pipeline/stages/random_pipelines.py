"""Random pipelines of the stages that ZigZag's documentation names, each with its expected result.

A plain reading of the list gives the result: all mappings of a layer in the order in which they are found, reduced at
each reduction, and finally by the outermost reduction. `python -m tests.unit.pipeline.stages.random_pipelines --count
200 --seed 1` tries many.
"""

import argparse
import json
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from tilewright.pipeline.stages import Control, Evaluations, LayerProblem, MappedWorkload, Pipeline, Rest, Stage
from tilewright.pipeline.stages.pipeline import check_pipeline
from tilewright.pipeline.stages.run import map_problem
from tilewright.results.checks import check_run
from tilewright.search.options import SearchOptions

from tests.unit.pipeline.stages.stage_cases import LAYERS, ordered_mapping, problem

OBJECTIVE_OF = {"MinimalLatency": "latency", "MinimalEnergy": "energy", "MinimalEDP": "EDP"}
WATCHERS = ("SimpleSave", "CompleteSave", "PickleSave", "Dump")
Point = tuple[float, float]
"""Energy and latency of a mapping."""


@dataclass(frozen=True)
class Recorder(Stage):
    """Stage that records the results for each layer."""

    takes = LayerProblem
    found: dict[str, list[Evaluations]] = field(default_factory=dict, compare=False)

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Any]:
        """Record all results, and yield them."""
        results = list(rest(item))
        for name in item.names:
            self.found[name] = results
        yield from results


def random_pipeline(draw: random.Random, plots: bool = False) -> list[Any]:
    """A list of stages, two thirds of them in order; in the others, a stage is moved, repeated or left out."""
    watchers = [*WATCHERS, "PlotTemporalMappings"] if plots else list(WATCHERS)
    reductions = list(OBJECTIVE_OF)
    counter = iter(range(100))

    def some(names: list[str], chance: float) -> list[Any]:
        chosen = []
        while draw.random() < chance:
            name = draw.choice(names)
            own = {"folder": f"at{next(counter)}"} if name in watchers and draw.random() < 0.9 else {}
            chosen.append({"stage": f"{name}Stage", "parameters": own} if own else f"{name}Stage")
        return chosen

    locality = draw.random() < 0.15
    both = [*watchers, "Listify"]
    mapper: Any = draw.choice(["Loma", "Loma", "Loma", "Salsa", "Exact", "TemporalOrderingConversion"])
    if mapper == "Loma":
        mapper = {"stage": "LomaStage", "parameters": {"lpf_limit": draw.choice([1, 2, 3])}}
    elif mapper == "Salsa":
        mapper = {"stage": "SalsaStage", "parameters": {"salsa_iteration_number": 15, "salsa_restarts": 2}}
    generators = [["SpatialMappingGeneratorStage"], ["SpatialMappingGenerator", "SpatialMappingConversionStage"]]
    spatial = draw.choice([*generators, *generators, ["SpatialMappingConversionStage"]])
    parsers = draw.choice([[], ["ONNXModelParserStage", "AcceleratorParserStage"], ["AcceleratorParserStage"]])
    stages = [
        *parsers[:1],
        *some(watchers, 0.1),
        *parsers[1:],
        *some(watchers, 0.2),
        *(["SumStage"] if draw.random() < 0.6 else []),
        *(["SearchUnusedMemoryStage"] if locality else []),
        *some(watchers, 0.2),
        "WorkloadStage",
        *some(watchers, 0.3),
        *(["RemoveUnusedMemoryStage"] if locality else []),
        *some([*both, *reductions], 0.45),
        spatial[0],
        *some([*watchers, *reductions, *reductions], 0.3),
        *spatial[1:],
        *some([*watchers, *reductions, *reductions], 0.4),
        mapper,
        *some(reductions, 0.1),
        "CostModelStage",
    ]
    if draw.random() < 0.35:
        place, other = draw.randrange(len(stages)), draw.randrange(len(stages))
        change = draw.choice(["swap", "repeat", "drop"])
        if change == "swap":
            stages[place], stages[other] = stages[other], stages[place]
        elif change == "repeat":
            stages.insert(other, stages[place])
        else:
            del stages[place]
    return stages


# what must come of it -------------------------------------------------------------------------------------------------


def value_of(objective: str, point: Point) -> tuple[float, ...]:
    """The values by which points are compared."""
    energy, latency = point
    return {"latency": (latency, energy), "energy": (energy, latency), "EDP": (energy * latency,)}[objective]


def _kept(objective: str, points: list[Point]) -> list[Point]:
    return [min(points, key=lambda point: value_of(objective, point))] if points else []


@dataclass
class Expected:
    """Expected result of a pipeline: the point of each layer, the points at each watcher, and numbers of
    alternatives.
    """

    chosen: dict[str, Point]
    passing: dict[int, dict[str, list[Point]]]
    """Place of a watcher -> layer -> points that pass it."""
    alternatives: dict[str, int]


def expected(pipeline: Pipeline, options: SearchOptions) -> Expected:
    """The expected result, by a plain reading of the stages."""
    stages = pipeline.search().stages
    names = [stage.name() for stage in stages]
    below = names.index("Workload") + 1
    generator = next((i for i, name in enumerate(names) if name == "SpatialMappingGenerator"), None)
    mapper = next(i for i, name in enumerate(names) if name in ("Loma", "Salsa", "Exact", "TemporalOrderingConversion"))
    recorder = Recorder()
    plain = [
        stage
        for stage in stages
        if stage.name() not in (*OBJECTIVE_OF, *WATCHERS, "PlotTemporalMappings", "Listify", "Sum")
    ]
    at = [stage.name() for stage in plain].index("RemoveUnusedMemory" if "RemoveUnusedMemory" in names else "Workload")
    list(Pipeline((*plain[: at + 1], recorder, *plain[at + 1 :])).run(problem(ordered_mapping_for(names))))
    passing: dict[int, dict[str, list[Point]]] = {place: {} for place in range(len(stages))}
    chosen, others = {}, {}
    for layer, found in recorder.found.items():
        groups: dict[int, list[list[Point]]] = {}  # spatial mapping -> batch -> points
        for one in found:
            if one.costs is None:
                continue
            rows = one.costs.fits.nonzero()[0]
            points = [(float(one.costs.energy_pj[row]), float(one.costs.latency_cycles[row])) for row in rows]
            groups.setdefault(getattr(one.costs.batch.problem, "candidate", 0), []).append(points)
        for place in range(len(stages) - 2, below - 1, -1):
            goal = OBJECTIVE_OF.get(names[place])
            if goal and place > mapper:
                groups = {key: [_kept(goal, points) for points in batches] for key, batches in groups.items()}
            elif goal and generator is not None and place > generator:
                groups = {key: [_kept(goal, list(chain(*batches)))] for key, batches in groups.items()}
            elif goal:
                groups = {0: [_kept(goal, list(chain(*chain(*groups.values()))))]}
            passing[place][layer] = list(chain(*chain(*groups.values())))
        last = passing[below][layer] if below < len(stages) - 1 else []
        outermost = next((OBJECTIVE_OF[name] for name in names[below:] if name in OBJECTIVE_OF), "")
        goal = outermost or getattr(stages[mapper], "objective", "") or options.objective
        (chosen[layer],) = _kept(goal, last)
        others[layer] = len(last) - 1
        for place in range(below):
            passing[place][layer] = [chosen[layer]]
    watched = {place: of for place, of in passing.items() if names[place] in (*WATCHERS, "PlotTemporalMappings")}
    return Expected(chosen, watched, others)


def ordered_mapping_for(names: list[str]) -> Any:
    """The mapping file for a pipeline; it gives loop orders if no stage searches them."""
    from tests.unit.pipeline.stages.stage_cases import MAPPING

    return ordered_mapping() if "TemporalOrderingConversion" in names else MAPPING


# what came of it ------------------------------------------------------------------------------------------------------


def _of_layer(folder: Path, ending: str, layer: str) -> list[Path]:
    return [path for path in folder.glob(f"*{ending}") if path.name.removesuffix(ending).partition("-")[0] == layer]


def _complete_point(value: dict[str, Any]) -> Point:
    latency = value["outputs"]["latency"]
    return value["outputs"]["energy"]["energy_total"], sum(latency.values())


def written_points(stage: Any, exports: Path, layer: str, is_of_network: bool) -> list[Point]:
    """The points of a layer in the files that a watcher wrote."""
    folder, name = exports / stage.folder, stage.name()
    if name == "SimpleSave":
        contents = [json.loads(path.read_text()) for path in _of_layer(folder, "_simple.json", layer)]
        flat = [entry for content in contents for entry in (content if isinstance(content, list) else [content])]
        return [(entry["energy"], entry["latency"]) for entry in flat]
    if name == "CompleteSave":
        values = [json.loads(path.read_text()) for path in _of_layer(folder, "_complete.json", layer)]
        assert all(value["inputs"]["layer"]["name"] == layer for value in values)
        return [_complete_point(value) for value in values]
    whole = folder / stage.file_name
    files = [whole] if is_of_network else _of_layer(folder, f"_{stage.file_name}", layer)
    entries = [entry for path in files for entry in pickle.loads(path.read_bytes())]
    if name == "PickleSave":
        return [_complete_point(entry) for entry in entries if entry["inputs"]["layer"]["name"] == layer]
    points = []
    for entry in entries:
        records = entry.get("records", [entry] if "energy_pj" in entry else [])
        points += [
            (record["energy_pj"], record["latency_cycles"])
            for record in records
            if layer in (record.get("layer_names") or [record["layer"]["name"]])
        ]
        points += [(cost["energy"], cost["latency"]) for cost in entry.get("costs", ())]
    return points


def _rounded(points: list[Point]) -> list[Point]:
    return sorted((round(energy, 3), round(latency, 3)) for energy, latency in points)


def check(stages: list[Any], exports: Path, options: SearchOptions) -> str:
    """Returns `refused` or `run`; raises AssertionError if a pipeline does not do what its list says."""
    pipeline, problems = check_pipeline(stages, options)
    if pipeline is None:
        assert problems
        assert all(one.message for one in problems)
        return "refused"
    names = [stage.name() for stage in pipeline.search().stages]
    mapped = map_problem(problem(ordered_mapping_for(names)), pipeline, Control(exports=exports))
    wanted = expected(pipeline, options)
    compare(pipeline, mapped, wanted, exports)
    return "run"


def compare(pipeline: Pipeline, mapped: MappedWorkload, wanted: Expected, exports: Path) -> None:
    """Compare totals, counts and files with the expected ones."""
    summary, stages = mapped.summary, pipeline.search().stages
    assert summary["mac_count"] == sum(layer.mac_count for layer in LAYERS)
    assert round(summary["energy_pj"], 3) == round(sum(energy for energy, _ in wanted.chosen.values()), 3)
    assert summary["latency_cycles"] == sum(latency for _, latency in wanted.chosen.values())
    counts = {record.names[0]: record.alternatives for record in mapped.records}
    assert counts == {name: wanted.alternatives[name] for name in counts}
    told = summary.get("alternatives", {"mappings": 0})["mappings"]
    assert told == sum(counts.values())
    failed = [one for one in check_run(mapped.records, summary) if not one.passed]
    assert not failed, failed
    workload = next(place for place, stage in enumerate(stages) if stage.name() == "Workload")
    sums = [place for place, stage in enumerate(stages) if stage.name() == "Sum"]
    for place, of_layers in wanted.passing.items():
        stage: Any = stages[place]
        is_above_sum = any(place < other for other in sums)
        if stage.name() == "PlotTemporalMappings":
            drawn = len(list((exports / stage.folder).glob("*_loop_nest.svg")))
            assert drawn == sum(map(len, of_layers.values()))
        elif is_above_sum and stage.name() in ("SimpleSave", "CompleteSave"):
            ending = "simple" if stage.name() == "SimpleSave" else "complete"
            value = json.loads((exports / stage.folder / f"overall_{ending}.json").read_text())
            energy = value["energy"] if ending == "simple" else _complete_point(value)[0]
            assert round(energy, 3) == round(summary["energy_pj"], 3)
        else:
            for layer, points in of_layers.items():
                found = written_points(stage, exports, layer, place < workload)
                assert _rounded(found) == _rounded(points), (stage.name(), place, layer, len(found), len(points))


def tried(count: int, seed: int, plots: bool = False) -> Counter[str]:
    """Numbers of random pipelines, among `count`, that ran and that were refused."""
    outcomes: Counter[str] = Counter()
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        stages = random_pipeline(draw, plots)
        options = SearchOptions(lpf_limit=3, objective=draw.choice(["latency", "energy", "EDP"]), seed=3)
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcomes[check(stages, Path(folder), options)] += 1
            except Exception as error:
                raise AssertionError(f"pipeline {number} of seed {seed}, {options.objective}: {stages}") from error
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plots", action="store_true")
    given = parser.parse_args()
    print(dict(tried(given.count, given.seed, given.plots)))
