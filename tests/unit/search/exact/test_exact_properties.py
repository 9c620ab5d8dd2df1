"""Properties of all optima: more freedom, room or bandwidth never hurts, and names do not matter."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_workload
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.search import ExactParameters, search_exact
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import DimensionRelation, Layer
from tilewright.workload.yaml_reader import read_workload_yaml

from tests.unit.cost.engine_cases import constraints, convolution, gemm, network, small_core
from tests.unit.search.exact.exact_brute_force import OBJECTIVES, free_mapping_count, free_mappings
from tests.unit.search.exact.exact_cases import MODELS, ExactCase, random_case

ROUNDING = 1 + 1e-9
property_test = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
cases = st.integers(0, 10**6).map(lambda seed: random_case(random.Random(seed)))
models, objectives = st.sampled_from(MODELS), st.sampled_from(OBJECTIVES)


def least(case: ExactCase, model: str, objective: str, allocation: str = "free") -> float:
    """The optimum; infinite if no mapping fits."""
    result = search_exact(prepared_of(case, model), (), ExactParameters(objective, allocation))
    assert result is None or result.is_proven
    return float("inf") if result is None else result.value


def prepared_of(case: ExactCase, model: str) -> PreparedProblem:
    """The prepared problem; the example is skipped if the spatial mapping is impossible."""
    try:
        return case.prepared(model)
    except MappingError:
        assume(False)
        raise


def with_memory(core: Core, index: int, **changes: Any) -> Core:
    """The core with one memory changed."""
    memories: list[Memory] = list(core.memories)
    memories[index] = replace(memories[index], **changes)
    return replace(core, memories=tuple(memories))


# optima ---------------------------------------------------------------------------------------------------------------


@property_test
@given(cases, models, objectives)
def test_free_boundaries_never_hurt(case: ExactCase, model: str, objective: str) -> None:
    """The optimum with free boundaries is no worse than with the reference's allocator."""
    assert least(case, model, objective, "free") <= least(case, model, objective, "greedy") * ROUNDING


@property_test
@given(cases, models, objectives, st.integers(0, 9), st.sampled_from([2, 3, 10]))
def test_a_larger_memory_never_hurts(case: ExactCase, model: str, objective: str, which: int, factor: int) -> None:
    """More memory at the same cost of access makes no optimum with free boundaries worse, if the size at least doubles.

    With a smaller increase, one operand may take the room that another operand had for double buffering.
    """
    memory = which % len(case.core.memories)
    core = with_memory(case.core, memory, size_bits=case.core.memories[memory].size_bits * factor)
    assert least(replace(case, core=core), model, objective) <= least(case, model, objective) * ROUNDING


@property_test
@given(cases, models, st.integers(0, 9), st.integers(0, 9), st.sampled_from([2, 3]))
def test_more_bandwidth_never_hurts(case: ExactCase, model: str, which: int, port: int, factor: int) -> None:
    """A wider port makes no mapping slower."""
    prepared = prepared_of(case, model)
    assume(free_mapping_count(prepared) <= 6000)
    memory = case.core.memories[which % len(case.core.memories)]
    ports = list(memory.ports)
    index = port % len(ports)
    ports[index] = replace(ports[index], bandwidth_max_bits=ports[index].bandwidth_max_bits * factor)
    core = with_memory(case.core, case.core.memories.index(memory), ports=tuple(ports))
    before, after = free_mappings(prepared), free_mappings(replace(case, core=core).prepared(model))
    assert np.array_equal(before.fits, after.fits)
    assert np.all(after.latency_cycles[after.fits] <= before.latency_cycles[before.fits] * ROUNDING)


# names ----------------------------------------------------------------------------------------------------------------


def renamed(layer: Layer) -> Layer:
    """The layer with other names for itself and its dimensions, in the same alphabetical order."""
    names = sorted({d for d, _ in layer.loop_sizes} | {r.data_dimension for r in layer.relations})
    new = {name: f"{'ABCDEFGHIJKLMN'[i]}{name.lower()}".upper() + "Z" for i, name in enumerate(names)}
    return replace(
        layer,
        name="other",
        operand_dimensions=tuple((o, tuple(new.get(d, d) for d in own)) for o, own in layer.operand_dimensions),
        loop_sizes=tuple((new[d], size) for d, size in layer.loop_sizes),
        relations=tuple(
            DimensionRelation(new[r.data_dimension], tuple((new[d], c) for d, c in r.terms)) for r in layer.relations
        ),
        padding=tuple((new[d], pair) for d, pair in layer.padding),
    )


@property_test
@given(cases, models, objectives, st.sampled_from(["greedy", "free"]))
def test_names_mean_nothing(case: ExactCase, model: str, objective: str, allocation: str) -> None:
    """Other names of a layer and its dimensions change only the names in the result."""
    layer = renamed(case.layer)
    new = dict(zip(case.layer.size_of, layer.size_of, strict=True))
    unrolling = tuple((array, tuple((new[d], f) for d, f in factors)) for array, factors in case.unrolling)
    other = replace(case, layer=layer, unrolling=unrolling)
    results = [
        search_exact(prepared_of(which, model), (), ExactParameters(objective, allocation)) for which in (case, other)
    ]
    assert (results[0] is None) == (results[1] is None)
    if results[0] is not None and results[1] is not None:
        met = tuple(replace(one, order=tuple((new[d], f) for d, f in one.order)) for one in results[0].met)
        assert replace(results[0], order=tuple((new[d], f) for d, f in results[0].order), met=met) == results[1]


# files and threads ----------------------------------------------------------------------------------------------------

HARDWARE: dict[str, Any] = {
    "name": "tiny",
    "operational_array": {"dimensions": ["D1"], "sizes": [4], "unit_energy": 0.5, "unit_area": 1},
    "memories": {
        "buffer": {
            "operands": ["I1", "I2", "O"],
            "size": 600,
            "r_cost": 1.5,
            "w_cost": 1.25,
            "area": 0,
            "latency": 1,
            "served_dimensions": ["D1"],
            "ports": [
                {
                    "name": "rw_port_1",
                    "type": "read_write",
                    "bandwidth_min": 8,
                    "bandwidth_max": 32,
                    "allocation": ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"],
                }
            ],
        },
        "top": {
            "operands": ["I1", "I2", "O"],
            "size": 10000000,
            "r_cost": 40,
            "w_cost": 45,
            "area": 0,
            "latency": 1,
            "served_dimensions": ["D1"],
            "ports": [
                {
                    "name": "rw_port_1",
                    "type": "read_write",
                    "bandwidth_min": 8,
                    "bandwidth_max": 16,
                    "allocation": ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"],
                }
            ],
        },
    },
}
WORKLOAD: list[dict[str, Any]] = [
    {
        "id": 0,
        "name": "first",
        "operator_type": "Conv",
        "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
        "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
        "loop_sizes": [1, 4, 3, 4, 4, 3, 3],
        "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"W": 0, "I": 0},
    }
]
MAPPING: list[dict[str, Any]] = [
    {"name": "default", "spatial_mapping": {"D1": ["K, 4"]}, "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}
]
EXACT = SearchOptions(temporal_mapping_search_engine="exact", allocation="free", objective="EDP")


def shuffled(value: Any, rng: random.Random) -> Any:
    """Copy of the data with the keys of every table in another order, except memories: their order has a meaning."""
    if isinstance(value, list):
        return [shuffled(entry, rng) for entry in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    if "top" not in value and "O" not in value:
        rng.shuffle(keys)
    return {key: shuffled(value[key], rng) for key in keys}


def mapped(hardware: Any, workload: Any, mapping: Any) -> Any:
    """Records of the exact search for parsed descriptions."""
    core = read_accelerator(hardware).cores[0]
    return map_workload(read_workload_yaml(workload), core, read_mapping(mapping), EXACT).records


def test_order_of_keys_means_nothing() -> None:
    """Descriptions with their keys in other orders give the same records."""
    expected = mapped(HARDWARE, WORKLOAD, MAPPING)
    assert expected[0].search["proven"] is True
    rng = random.Random(1)
    seen: Counter[str] = Counter()
    for _ in range(5):
        texts = [shuffled(value, rng) for value in (HARDWARE, WORKLOAD, MAPPING)]
        seen[repr(texts)] += 1
        assert mapped(*texts) == expected
    assert len(seen) == 5


def test_threads_mean_nothing() -> None:
    """Two threads give the records and the summary that one thread gives."""
    layers = [
        convolution("one", K=8, C=3, OX=6, FX=3),
        gemm("two", C=12, D=5, K=6),
        convolution("three", padding=1, K=4, OX=4, OY=4, FX=3, FY=3),
        gemm("four", C=8, D=10, K=4),
        convolution("five", K=6, C=4, OX=5, OY=3, FX=2),
    ]
    mapping = Mapping((MappingConstraints("default", constraints().spatial_mapping),))
    for objective in OBJECTIVES:
        options = replace(EXACT, objective=objective)
        runs = [map_workload(network(layers), small_core(buffer_bits=600), mapping, options, threads=n) for n in (1, 2)]
        assert runs[0].records == runs[1].records
        assert runs[0].summary == runs[1].summary
        assert all(record.search["proven"] for record in runs[0].records)
