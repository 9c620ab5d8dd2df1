"""Level boundaries in mapping files: reading, checks, and an export that reads back to the same numbers."""

from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError, MappingError
from tilewright.cli.main import main
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_layer
from tilewright.results.recorded_mappings import mapping_yaml
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import constraints, convolution, small_core

LAYER = convolution("one", K=8, C=6, OX=6, FX=3)
CORE = small_core(buffer_bits=600)
FREE = SearchOptions(temporal_mapping_search_engine="exact", allocation="free")


def entry(**changes: Any) -> dict[str, Any]:
    """Return an entry with a complete ordering and level boundaries."""
    return {
        "name": "default",
        "temporal_ordering": [["K", 8], ["C", 3]],
        "level_boundaries": {"O": [0, 1, 2], "W": [1, 2], "I": [2, 2]},
    } | changes


def test_boundaries_are_read() -> None:
    """The boundaries of each operand are read in the order of the file."""
    mapping = read_mapping([entry()])
    assert mapping.entries[0].level_boundaries == (("O", (0, 1, 2)), ("W", (1, 2)), ("I", (2, 2)))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"temporal_ordering": [["K", "*"]]}, "gives every loop"),
        ({"temporal_ordering": None}, "gives every loop"),
        ({"level_boundaries": {"O": [2, 1], "W": [1], "I": [1]}}, "fewer loops than the level below"),
        ({"level_boundaries": {"O": [2], "W": [1]}}, "missing"),
        ({"level_boundaries": {"O": [2], "W": [1], "I": [-1]}}, "0"),
    ],
)
def test_wrong_boundaries_are_told(changes: dict[str, Any], told: str) -> None:
    """Boundaries without a complete ordering, with falling values or without an operand are refused."""
    with pytest.raises(InputError, match=told):
        read_mapping([entry(**changes)])


def test_free_mapping_reads_back_to_the_same_numbers() -> None:
    """A mapping that the exact search found with free boundaries reads back from its export with equal figures."""
    found = map_layer(LAYER, CORE, constraints(), FREE)
    entries = yaml.safe_load(mapping_yaml([found], tuple(CORE.operational_array.size_of)))
    mapping = read_mapping(entries)
    again = map_layer(LAYER, CORE, mapping.constraints_for(LAYER), SearchOptions())
    for key in ("energy_pj", "latency_cycles", "energy_breakdown_pj", "level_boundaries", "loop_order"):
        assert getattr(again, key) == getattr(found, key)
    greedy = map_layer(LAYER, CORE, constraints(), SearchOptions())
    assert found.latency_cycles < greedy.latency_cycles


def test_boundaries_that_do_not_fit_are_a_reason() -> None:
    """Boundaries that do not fit are an error with the memory, and nothing else is searched."""
    found = map_layer(LAYER, CORE, constraints(), FREE)
    entries = yaml.safe_load(mapping_yaml([found], tuple(CORE.operational_array.size_of)))
    loops = len(entries[0]["temporal_ordering"])
    for bounds in entries[0]["level_boundaries"].values():
        bounds[:] = [loops] * len(bounds)
    with pytest.raises(MappingError, match="too small"):
        map_layer(LAYER, CORE, read_mapping(entries).constraints_for(LAYER), SearchOptions())


def test_free_boundaries_and_even_mappings_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Free boundaries with an even mapping are refused before anything runs."""
    paths = ("--hardware", "x.yaml", "--workload", "x.onnx", "--mapping", "x.yaml")
    options = ("--temporal-mapping-search-engine", "exact", "--allocation", "free", "--temporal-mapping-type", "even")
    assert main(["map", *paths, *options]) == 2
    assert "all operands have the same level boundaries" in capsys.readouterr().err
