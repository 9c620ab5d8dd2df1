"""Searches on a core with calls, commands and requests: every engine counts waiting, and proofs do not cover it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.cost.waiting import WAITING_TERMS
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.pipeline.stages.run import MappedWorkload, map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import gemm, network

EXAMPLE = Path(__file__).parents[3] / "config/hardware/zigzag/tpu_like.yaml"
LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))


def core(*, waits: bool = True) -> Core:
    """A core of the examples, with all kinds of keys for waiting or with none."""
    data: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    if waits:
        data |= {"call_cycles": 500, "calls_in_flight": 2}
        data["operational_array"] |= {
            "command_iterations": 4,
            "command_latency_cycles": 90,
            "commands_in_flight": 2,
            "command_dimensions": ["D"],
        }
        list(data["memories"].values())[-1].update(
            request_latency_cycles=400, requests_in_flight=2, burst="64 B", row_dimensions=["K", "C"]
        )
    return parse_accelerator(data).cores[0]


def mapped(options: SearchOptions, *, waits: bool = True) -> MappedWorkload:
    """A matrix product with a given spatial mapping, mapped with these options."""
    given = MappingConstraints("default", (("D1", (("K", 32),)), ("D2", (("C", 32),))), (), LINKS)
    return map_workload(network([gemm(C=64, D=24, K=96)]), core(waits=waits), Mapping((given,)), options)


@pytest.mark.parametrize("engine", ["loma", "salsa", "exact", "best"])
def test_every_engine_counts_the_waiting(engine: str) -> None:
    """The latency equals an evaluation of the found mapping, with waiting, and all checks of the run hold."""
    options = SearchOptions(temporal_mapping_search_engine=engine, model="corrected", objective="latency")  # type: ignore[arg-type]
    found = mapped(options)
    (record,) = found.records
    assert sum(record.latency_breakdown_cycles[name] for name in WAITING_TERMS) > 0
    again = evaluate(
        gemm(C=64, D=24, K=96),
        core(),
        LINKS,
        tuple((side, tuple(loops.items())) for side, loops in record.spatial_mapping.items()),
        record.loop_order,
        options,
    )
    assert again.latency_cycles == record.latency_cycles == found.summary["latency_cycles"]
    assert failure_message(check_run(found.records, found.summary, core())) == ""


@pytest.mark.parametrize("engine", ["exact", "best"])
def test_engines_with_proofs_say_that_they_prove_nothing(engine: str) -> None:
    """Engines with proofs give loma's best order, without a proof, on a core with keys of waiting.

    The record names the keys as the reason. Without the keys, no such reason is given.
    """
    options = SearchOptions(temporal_mapping_search_engine=engine, model="corrected", objective="latency")  # type: ignore[arg-type]
    (record,) = mapped(options).records
    (reason,) = mapped(options).summary["without_proof"]
    assert record.search["no_proof"] == reason
    assert all(key in reason for key in ("call_cycles", "command_iterations", "request_latency_cycles"))
    assert "proven" not in record.search
    (bare,) = mapped(options, waits=False).records
    assert "no_proof" not in bare.search
    (by_loma,) = mapped(SearchOptions(model="corrected", objective="latency")).records
    assert record.latency_cycles == by_loma.latency_cycles


@pytest.mark.parametrize("objective", ["latency", "EDP"])
def test_printed_lower_bounds_hold(objective: str) -> None:
    """The bound of loma is not above the mapping found, and not above the mapping without the keys."""
    options = SearchOptions(bounds=True, model="corrected", objective=objective)
    (record,) = mapped(options).records
    (bare,) = mapped(options, waits=False).records
    assert 0 < record.search["lower_bound"] <= record.search["value"]
    assert record.search["value"] > bare.search["value"]
    assert record.search["lower_bound"] <= bare.search["value"] * (1 + 1e-9)
    assert not record.search["proven"]
