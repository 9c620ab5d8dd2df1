"""Attacks on the values, lower bounds and gaps of the default search, for networks on shipped cores.

The search must never be worse than loma or salsa, at any effort. No value and no random mapping may be below the bound
of any search, for a layer or for the network.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tilewright.base.errors import MappingError, TilewrightError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import profile_by_name
from tilewright.cost.record import LayerRecord
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.temporal import loop_multiset
from tilewright.pipeline.stages.base import Rest, Stage
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.items import Evaluations, LayerProblem, MappedWorkload
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.run import default_pipeline, map_problem, read_problem
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import prepare
from tilewright.search.options import MapOptions

from tests.plain.tally import Tally

CONFIG = Path(__file__).resolve().parents[2] / "config"
CORES = tuple(sorted(one for one in (CONFIG / "hardware").rglob("*.yaml") if "multi" not in one.parts))
"""Hardware files of the shipped cores."""
EFFORTS = (1, 10, 100, 1_000, 3_000, 10_000, 30_000, 60_000, 100_000, 200_000, 400_000, 600_000)
LINKS = {"O": "O", "W": "I2", "I": "I1"}
BITS = {"W": 8, "I": 8, "O": 16, "O_final": 8}
CHANNELS = (1, 3, 5, 8, 12, 17, 24, 33, 48, 64, 100, 128, 160, 255)
SIDES = (1, 3, 7, 8, 13, 15, 22, 28, 31, 45, 56, 112)
ROWS = (1, 1, 5, 16, 37, 64, 129, 512)
CLOSE = 1e-9
SPATIAL_MAPPINGS, ORDERS, COMBINATIONS = 6, 100, 1_000
"""Numbers of random spatial mappings of a layer, of loop orders of each, and of choices of one mapping for each
layer.
"""
FAR = 0.005
"""True distance above which a layer is named."""
PROOF_S = 20.0
"""Seconds in which a layer must be proven; else its optimum counts as unknown."""


@dataclass(frozen=True)
class Capture(Stage):
    """Stage that keeps the layer problems from the stages above, in the form in which the search gets them."""

    kept: list[LayerProblem] = field(default_factory=list)
    takes = LayerProblem
    gives = LayerProblem

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """Keep the problem, and yield the results of the stages below."""
        self.kept.append(item)
        yield from rest(item)


@dataclass(frozen=True)
class Mappings:
    """Costs of random mappings of one layer."""

    names: tuple[str, ...]
    energy_pj: np.ndarray
    latency_cycles: np.ndarray


@dataclass
class Said:
    """Values and bounds of one layer or network, each with the name of its search."""

    values: list[tuple[str, float, float]] = field(default_factory=list)
    """(search, energy in pJ, latency in cycles) of mappings."""
    bounds: list[tuple[str, str, float]] = field(default_factory=list)
    """(search, objective, lower bound)."""
    lines: list[tuple[str, float, float]] = field(default_factory=list)
    """(search, weight of the latency in pJ per cycle, lower bound of energy + weight x latency in pJ)."""

    def least(self, goal: str) -> tuple[float, str]:
        """(least value of an objective among the mappings, its search)."""
        return min((float(OBJECTIVES[goal].value(energy, latency)), name) for name, energy, latency in self.values)

    def contradictions(self) -> Iterator[str]:
        """Sentences on bounds that are above a value."""
        for name, goal, bound in self.bounds:
            value, finder = self.least(goal)
            if bound > value * (1 + CLOSE):
                yield f"{goal} {value!r} of {finder} is below the bound {bound!r} of {name}"
        for name, weight, level in self.lines:
            total, finder = min((energy + weight * latency, one) for one, energy, latency in self.values)
            if level > total * (1 + CLOSE):
                yield f"sum {total!r} with weight {weight!r} of {finder} is below the line {level!r} of {name}"


def try_default_answers(seed: int, cores: Sequence[Path] = CORES) -> Tally:
    """Check the answers for a random network on a shipped core, with a given or an open spatial mapping."""
    tally, rng = Tally(), random.Random(seed)
    hardware = cores[seed % len(cores)]
    is_given = rng.random() < 0.5
    mapping: Any = mapping_file(hardware) if is_given else None
    mapping = mapping or [{"name": "default", "memory_operand_links": LINKS}]
    try:
        problem = read_problem(Descriptions(str(hardware), random_network(rng), mapping))
        case = _Case(problem, rng, tally, f"seed {seed}, {hardware.stem}")
        case.compare(rng.sample(EFFORTS, 4), with_proof=True)
    except MappingError:
        tally.counts["networks of which a layer has no mapping"] += 1
    return tally


def try_pair(seed: int, pairs: Sequence[tuple[Path, Path]]) -> Tally:
    """Check the answers for a pair of a shipped core and network at all efforts, with options of the seed."""
    tally, rng = Tally(), random.Random(seed)
    hardware, network = pairs[seed % len(pairs)]
    problem = read_problem(Descriptions(str(hardware), str(network), str(mapping_file(hardware))))
    try:
        _Case(problem, rng, tally, f"seed {seed}, {hardware.stem}, {network.stem}").compare(EFFORTS, with_proof=False)
    except MappingError:
        tally.counts["networks of which a layer has no mapping"] += 1
    return tally


def mapping_file(hardware: Path) -> Path | None:
    """The mapping file that is shipped for a core; None if there is none."""
    name = hardware.name if "systolic" not in hardware.parts else "systolic_45nm.yaml"
    return next(iter(sorted((CONFIG / "mapping").rglob(name))), None)


def random_network(rng: random.Random) -> list[dict[str, Any]]:
    """A workload of one layer, or of a chain of two or three convolutions, with sizes that are often odd or prime."""
    if rng.random() < 0.4:
        return [_product(rng)]
    count = rng.choice((1, 1, 2, 3))
    side, channels = [rng.choice(SIDES) for _ in range(2)], rng.choice(CHANNELS)
    layers: list[dict[str, Any]] = []
    for number in range(count):
        layer = _convolution(rng, number, side, channels)
        layers.append(layer)
        sizes = dict(zip(layer["loop_dims"], layer["loop_sizes"], strict=True))
        side, channels = [sizes["OY"], sizes["OX"]], sizes.get("K", sizes.get("G"))
    return layers


def _product(rng: random.Random) -> dict[str, Any]:
    sizes = [rng.choice(CHANNELS), rng.choice(ROWS), rng.choice((*CHANNELS, 384, 1000))]
    return {
        "id": 0,
        "name": "product",
        "operator_type": "Gemm",
        "equation": "O[d][k] += I[d][c] * W[c][k]",
        "loop_dims": ["C", "D", "K"],
        "loop_sizes": sizes,
        "operand_precision": BITS,
        "operand_source": {"W": 0, "I": 0},
    }


def _convolution(rng: random.Random, number: int, side: list[int], channels: int) -> dict[str, Any]:
    """A convolution of an image of the given sides, without padding; every fourth is depthwise."""
    windows = [rng.choice([size for size in (1, 1, 3, 5) if size <= length]) for length in side]
    outputs = [length - size + 1 for length, size in zip(side, windows, strict=True)]
    inputs = number - 1 if number else 0
    is_depthwise = rng.random() < 0.25
    dims, sizes = (["G"], [channels]) if is_depthwise else (["K", "C"], [rng.choice(CHANNELS), channels])
    image, weights, result = ("g", "g", "g") if is_depthwise else ("c", "k][c", "k")
    return {
        "id": number,
        "name": f"conv{number}",
        "operator_type": "Conv",
        "equation": f"O[{result}][oy][ox] += W[{weights}][fy][fx] * I[{image}][iy][ix]",
        "dimension_relations": ["ix = 1*ox + 1*fx", "iy = 1*oy + 1*fy"],
        "loop_dims": [*dims, "OY", "OX", "FY", "FX"],
        "loop_sizes": [*sizes, *outputs, *windows],
        "operand_precision": BITS,
        "operand_source": {"W": number, "I": inputs},
    }


@dataclass
class _Case:
    """A network with the options of a seed, and the statements of searches and random mappings on it."""

    problem: NetworkProblem
    rng: random.Random
    tally: Tally
    where: str
    network: Said = field(default_factory=Said)
    layers: dict[str, Said] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def compare(self, efforts: Sequence[int], with_proof: bool) -> None:
        """Compare searches with each other and with random mappings, and add errors to the tally."""
        objective = self.rng.choice(("EDP", "EDP", "energy", "latency"))
        common = {
            "model": self.rng.choice(("corrected", "corrected", "zigzag-3.9.1")),
            "objective": objective,
            "exploit_data_locality": self.rng.random() < 0.5,
            "near_optimum": 0.0 if objective == "EDP" else self.rng.choice((0.0, 0.001)),
        }
        self.where += f", {common}"
        self.tally.counts[f"networks, {common['model']}, {objective}"] += 1
        plain = {**common, "near_optimum": 0.0, "bounds": False}
        others = [self._search(f"{one}", {**plain, "temporal_mapping_search_engine": one}) for one in ("loma", "salsa")]
        default = self._search("best", common)
        answers = [default, *(self._search(f"best {effort}", {**common, "effort": effort}) for effort in efforts)]
        for answer in answers:
            self._never_worse(answer, others, objective, common["near_optimum"])
        self._random_mappings(common)
        for name, said in (("network", self.network), *self.layers.items()):
            self.tally.wrong += [f"{self.where}, {name}: {text}" for text in said.contradictions()]
        self._gaps(default, common if with_proof else None)

    def _search(self, name: str, given: dict[str, Any]) -> MappedWorkload:
        found = map_problem(self.problem, default_pipeline(MapOptions(**given)))
        own = float(found.summary["energy_pj"]), float(found.summary["latency_cycles"])
        self.network.values.append((name, *own))
        certificate = found.summary.get("certificate", {})
        if "run" in certificate:
            self.network.bounds.append((name, given["objective"], certificate["run"]["lower_bound"]))
        for goal in certificate.get("ends", {}).keys() & OBJECTIVES.keys():
            self.network.bounds.append((name, goal, certificate["ends"][goal]["lower_bound"]))
        for record in found.records:
            self._layer(name, record, given["objective"])
        return found

    def _layer(self, name: str, record: LayerRecord, objective: str) -> None:
        said = self.layers.setdefault(record.names[0], Said())
        self.layers |= dict.fromkeys(record.names, said)  # equal layers have one record
        said.values.append((name, record.energy_pj, float(record.latency_cycles)))
        if "lower_bound" not in record.search:
            return
        said.bounds.append((name, objective, record.search["lower_bound"]))
        said.lines += [(name, line["pj_a_cycle"], line["level_pj"]) for line in record.search.get("lines", ())]
        for goal, end in record.search.get("ends", {}).items():
            if goal in OBJECTIVES:
                said.bounds.append((name, goal, end["lower_bound"]))
                said.values.append((f"{name}, least {goal}", end["energy_pj"], end["latency_cycles"]))

    def _never_worse(
        self, answer: MappedWorkload, others: Sequence[MappedWorkload], objective: str, loss: float
    ) -> None:
        """Check that the answer is no worse than those of loma and salsa by more than the accepted loss.

        For the EDP, two comparisons are made: the EDP of the network, and for each layer the least EDP that was found
        for the layer alone.
        """
        if objective == "EDP":
            self.tally.counts["comparisons of a network with loma or salsa"] += len(others)
            own = answer.summary["edp_pj_cycles"]
            for other in others:
                if own > other.summary["edp_pj_cycles"] * (1 + CLOSE):
                    self.tally.wrong.append(f"{self.where}: {own!r} is worse than {other.summary['edp_pj_cycles']!r}")
        for place, record in enumerate(answer.records):
            least = record.search.get("for_network", {}).get("least_of_layer")
            value = _value(record, objective)
            if least is not None:
                value = OBJECTIVES[objective].value(least["energy_pj"], least["latency_cycles"])
            self.tally.counts["comparisons of a layer with loma or salsa"] += len(others)
            for other in others:
                best = _value(other.records[place], objective)
                if value > best * (1 + loss) * (1 + CLOSE):
                    self.tally.wrong.append(f"{self.where}, {record.names[0]}: {value!r} is worse than {best!r}")

    def _random_mappings(self, given: dict[str, Any]) -> None:
        """Add the costs of random mappings of each layer, and of random choices of one mapping for each layer."""
        capture = Capture()
        options = {**given, "near_optimum": 0.0, "bounds": False, "temporal_mapping_search_engine": "salsa"}
        chain = default_pipeline(MapOptions(**options, salsa_iteration_number=1)).stages
        place = 1 + max(i for i, stage in enumerate(chain) if stage.gives is LayerProblem)
        map_problem(self.problem, Pipeline((*chain[:place], capture, *chain[place:])))
        made = [one for one in (self._mappings_of(item, given["model"]) for item in capture.kept) if one is not None]
        for one in made:
            said = self.layers[one.names[0]]
            self.tally.counts["random mappings"] += len(one.energy_pj)
            for goal, powers in OBJECTIVES.items():
                row = int(powers.value(one.energy_pj, one.latency_cycles).argmin())
                said.values.append((f"random, {goal}", float(one.energy_pj[row]), float(one.latency_cycles[row])))
        if made and len(made) == len(capture.kept):
            self._choices_of(made)

    def _choices_of(self, made: list[Mappings]) -> None:
        """Add the costs of the network for random mappings of its layers."""
        draw = np.random.default_rng(self.rng.getrandbits(32))
        energy, latency = np.zeros(COMBINATIONS), np.zeros(COMBINATIONS)
        for one in made:
            rows = draw.integers(len(one.energy_pj), size=COMBINATIONS)
            energy += one.energy_pj[rows] * len(one.names)
            latency += one.latency_cycles[rows] * len(one.names)
        self.tally.counts["random mappings of networks"] += COMBINATIONS
        for goal, powers in OBJECTIVES.items():
            row = int(powers.value(energy, latency).argmin())
            self.network.values.append((f"random, {goal}", float(energy[row]), float(latency[row])))

    def _mappings_of(self, item: LayerProblem, model: str) -> Mappings | None:
        """Random mappings that fit; None if none fits."""
        profile, links = profile_by_name(model), item.constraints.memory_operand_links
        unrollings = spatial_candidates(item.layer, item.core, item.constraints, profile, 0)
        found = []
        for unrolling in self.rng.sample(unrollings, min(len(unrollings), SPATIAL_MAPPINGS)):
            try:
                prepared = prepare(item.layer, item.core, links, unrolling, MapOptions(model=model))
                multiset = loop_multiset(prepared.spatial.temporal_sizes, self.rng.choice((None, 4, 6)), ())
                loops = [index for index, (_, count) in enumerate(multiset.loops) for _ in range(count)]
                drawn = [self.rng.sample(loops, len(loops)) for _ in range(ORDERS)]
                orders = np.array(drawn, np.int64).reshape(ORDERS, -1)
                costs = cost_orders(OrderBatch(prepared, tuple(loop for loop, _ in multiset.loops), orders))
            except TilewrightError:
                continue
            found.append((costs.energy_pj[costs.fits], costs.latency_cycles[costs.fits]))
        energy, latency = (np.concatenate([one[i] for one in found]) if found else np.zeros(0) for i in range(2))
        return Mappings(item.names, energy, latency) if len(energy) else None

    def _gaps(self, default: MappedWorkload, given: dict[str, Any] | None) -> None:
        """Count the printed gaps of layers, and their true distances from the optimum where it can be proven."""
        proven: dict[str, float] = {}
        if given is not None:
            options = {
                **given,
                "near_optimum": 0.0,
                "temporal_mapping_search_engine": "exact",
                "time_budget_s": PROOF_S,
            }
            found = self._search("exact", options)
            proven = {one.names[0]: _value(one, given["objective"]) for one in found.records if one.search["proven"]}
        for record in default.records:
            self.tally.counts["layers"] += 1
            if "gap" not in record.search:
                self.tally.counts["layers without a bound"] += 1
                continue
            if (chosen := record.search.get("for_network")) is not None:
                self.tally.counts[f"chosen for the network, printed gap at most {_class_of(chosen['gap'])}"] += 1
                continue
            self.tally.counts[f"printed gap at most {_class_of(record.search['gap'])}"] += 1
            if record.names[0] in proven:
                optimum = proven[record.names[0]]
                distance = _value(record, record_objective(default)) / optimum - 1 if optimum else 0.0
                self.tally.counts[f"true distance at most {_class_of(distance)}"] += 1
                if distance > FAR:
                    self.tally.counts[f"farthest layers: {self.where}, {record.names[0]}: {distance:.1%}"] += 1


def record_objective(found: MappedWorkload) -> str:
    """Objective of a mapped network."""
    return str(found.summary["objective"])


def _value(record: LayerRecord, objective: str) -> float:
    return float(OBJECTIVES[objective].value(record.energy_pj, float(record.latency_cycles)))


def _class_of(share: float) -> str:
    """The least class of shares that is at least this share, as text."""
    classes = (0.0, 0.001, 0.005, 0.01, 0.02, 0.03, 0.1, 0.5, 1.0)
    least = next((one for one in classes if share <= one + 1e-12), None)
    return "any" if least is None else f"{least:6.1%}"
