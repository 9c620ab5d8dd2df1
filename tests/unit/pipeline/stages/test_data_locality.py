"""The statements of a run about the data between its layers, in the summary and in text."""

from collections.abc import Callable
from typing import Any

import pytest
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.items import MappedWorkload
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.recorded_mappings import mapping_entries
from tilewright.results.run_text import assumption, could_keep, locality_lines, setting_of, setting_text
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import gemm
from tests.unit.mapping.locality_cases import buffered_core, entry, network

CHAIN = network((entry("a", D=4, C=6, K=8),), (gemm("b", D=4, C=8, K=6), (0,)), (gemm("c", D=4, C=6, K=8), (1,)))
PLAIN = Mapping((MappingConstraints("default"),))
ROOMY, TIGHT = (buffered_core((64, ("I2",)), (bits, ("I1", "I2", "O"))) for bits in (4000, 150))


def run(core: Core, mapping: Mapping = PLAIN, *, exploit: bool = False) -> MappedWorkload:
    """A run of the chain on a core."""
    return map_workload(
        CHAIN, core, mapping, SearchOptions(model="corrected", lpf_limit=3, exploit_data_locality=exploit)
    )


def reach_of_file() -> MappedWorkload:
    """A run without the option, whose mapping file keeps data below the top memory."""
    return run(ROOMY, read_mapping(mapping_entries(run(ROOMY, exploit=True).records)))


@pytest.mark.parametrize(
    ("make", "exploited", "below", "line"),
    [
        (
            lambda: run(ROOMY, exploit=True),
            True,
            3,
            "data between layers: 3 of 3 layers keep data below the top memory",
        ),
        (reach_of_file, True, 3, "data between layers: 3 of 3 layers keep data below the top memory"),
        (lambda: run(TIGHT, exploit=True), True, 0, "exploit_data_locality changed nothing: every operand"),
        (lambda: run(ROOMY), False, 3, "exploit_data_locality would keep data below the top memory in 3 of 3 layers"),
        (lambda: run(TIGHT), False, 0, ""),
    ],
)
def test_a_run_says_what_becomes_of_data(
    make: Callable[[], MappedWorkload], exploited: bool, below: int, line: str
) -> None:
    """The summary and a line say in how many layers data stay below the top memory, or would stay there."""
    summary = make().summary
    assert summary["data_locality"] == {"exploited": exploited, "layers": 3, "layers_below_top": below}
    lines = list(locality_lines(summary))
    assert len(lines) == bool(line)
    assert line in "".join(lines)
    assert could_keep(summary) == (not exploited and below > 0)
    assert setting_of(summary) == ("kept below" if exploited else "top memory")
    assert setting_text(summary) == (f"kept below: {below} of 3" if exploited else "top memory")


def test_what_changes_nothing_has_the_same_numbers() -> None:
    """Energy and latency do not depend on the option if the summary says that the option changes nothing."""
    with_option, without = (run(TIGHT, exploit=exploit).summary for exploit in (True, False))
    for key in ("energy_pj", "latency_cycles"):
        assert with_option[key] == without[key]
    assert run(ROOMY, exploit=True).summary["energy_pj"] < run(ROOMY).summary["energy_pj"]


def test_what_is_assumed() -> None:
    """The assumption says where data lie in all runs, and that operators without costs are free. Old summaries have
    none.
    """
    summaries: list[Any] = [run(ROOMY).summary, run(ROOMY, exploit=True).summary]
    top = "every layer reads its inputs from the top memory and writes its outputs to the top memory"
    kept = "data between two layers stay in a memory below the top memory if such a memory has room"
    assert assumption(summaries[:1]) == top
    assert assumption(summaries) == f"{top}, or {kept}"
    not_costed = summaries[0] | {"coverage": {"complete": False}}
    assert assumption([not_costed]) == f"{top}; operators without costs are counted as free"
    del not_costed["data_locality"], not_costed["coverage"]
    assert assumption([not_costed]) == ""
    assert list(locality_lines(not_costed)) == []
    assert setting_text(not_costed) == "not said"
