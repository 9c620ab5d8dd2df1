"""Networks on in-memory arrays: omitted layers, notices, and the array's parts in checks, tables and figures."""

from pathlib import Path
from typing import Any

import pytest
from tilewright.cost.record import record_of_row, record_row
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.pipeline.stages.items import MappedWorkload
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.results.figures import energy_figure
from tilewright.results.run_columns import run_row
from tilewright.results.tables import layer_table
from tilewright.search.options import SearchOptions
from tilewright.workload.yaml_reader import read_workload_yaml

HARDWARE = Path(__file__).parents[3] / "conformance/data/in_memory/hardware"
PRECISIONS = {"W": 4, "I": 4, "O": 16, "O_final": 8}
MAPPING = Mapping((MappingConstraints("default", spatial_mapping_hint=(("D1", ("K",)), ("D2", ("C", "FX")))),))


def layer(number: int, kind: str, equation: str, **others: Any) -> dict[str, Any]:
    """One layer of a workload file."""
    described = {"id": number, "name": f"{kind}{number}", "operator_type": kind, "equation": equation}
    loops = {"K": 20, "C": 8, "OX": 6, "OY": 4, "FX": 3, "FY": 1}
    used = [name for name in loops if name.lower() in equation.replace("ix", "ox fx").replace("iy", "oy fy")]
    described |= {"loop_dims": used, "loop_sizes": [loops[name] for name in used], "operand_precision": PRECISIONS}
    return described | others


NETWORK = [
    layer(
        0,
        "Conv",
        "O[k][oy][ox]+=W[k][c][fy][fx]*I[c][iy][ix]",
        dimension_relations=["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
        operand_source={"W": 0, "I": 0},
    ),
    layer(1, "Add", "O[k][oy][ox]=W[k][oy][ox]+I[k][oy][ox]", operand_source={"W": 0, "I": 0}),
    layer(
        2,
        "Pooling",
        "O[k][oy][ox]+=W[fx][fy]*I[k][iy][ix]",
        dimension_relations=["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
        operand_source={"W": 2, "I": 1},
    ),
]


def mapped(hardware: str, **options: Any) -> MappedWorkload:
    """The network, mapped on an array."""
    core = read_accelerator(HARDWARE / f"{hardware}.yaml").cores[0]
    return map_workload(read_workload_yaml(NETWORK), core, MAPPING, SearchOptions(**options))


@pytest.mark.parametrize("hardware", ["analog_24x40", "digital_16x32x3"])
@pytest.mark.parametrize("options", [{}, {"model": "corrected"}, {"exploit_data_locality": True}])
def test_layers_without_weights_are_left_out_and_told(hardware: str, options: dict[str, Any]) -> None:
    """Pooling and Add are not run, as in the reference, and the summary says so.

    The summary also has the area and the clock period, in total and by part.
    """
    found = mapped(hardware, lpf_limit=4, **options)
    assert [record.layer.name for record in found.records] == ["Conv0"]
    left_out = found.summary["coverage"]["not_costed"]
    assert {(row["operator_type"], row["reason"]) for row in left_out} == {
        ("Add", "not run by the core"),
        ("Pooling", "not run by the core"),
    }
    core = read_accelerator(HARDWARE / f"{hardware}.yaml").cores[0]
    assert failure_message(check_run(found.records, found.summary, core)) == ""
    (record,) = found.records
    assert record.area_mm2 == pytest.approx(sum(sum(part.values()) for part in record.area_breakdown_mm2.values()))
    assert record.clock_period_ns == pytest.approx(sum(record.clock_breakdown_ns.values()))
    for name in ("area_mm2", "clock_period_ns", "area_breakdown_mm2", "clock_breakdown_ns"):
        assert found.summary[name] == getattr(record, name)
    assert record_of_row(record_row(record)) == record


@pytest.mark.parametrize("engine", ["loma", "salsa", "exact"])
def test_every_engine_and_every_output_knows_the_parts(engine: str) -> None:
    """Tables and figures have the energy terms of the array with every engine; no engine beats the exact one."""
    found = mapped("analog_24x40", temporal_mapping_search_engine=engine, objective="energy")
    (record,) = found.records
    terms = ["dacs", "adcs", "mults", "analog_bl_addition", "adders_pv", "accumulators", "memory"]
    assert list(record.energy_terms_pj) == terms
    assert record.energy_pj == pytest.approx(sum(record.energy_terms_pj.values()))
    assert {f"{term}_energy_pj" for term in terms} <= set(layer_table(found.records, found.summary))
    assert run_row("run", found.summary)["adcs_energy_pj"] == record.energy_terms_pj["adcs"]
    texts = {text.get_text() for legend in energy_figure(found.records).legends for text in legend.get_texts()}
    assert {"ADCs", "multipliers", "place-value adders"} <= texts
    best = mapped("analog_24x40", temporal_mapping_search_engine="exact", objective="energy").records[0]
    assert best.energy_pj <= record.energy_pj * (1 + 1e-9)
