"""A kind of array that a test adds: its energy, cycles, area and refusals reach every output."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.registry import enter, withdraw
from tilewright.hardware import core_reader
from tilewright.hardware.array_model import ARRAY_MODELS, ArrayWork, Digital
from tilewright.hardware.core import NO_UNIT, OperationalArray
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import core_area
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.pipeline.stages.run import map_layer, map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.results.figures import energy_figure
from tilewright.results.run_columns import run_row
from tilewright.results.tables import layer_table
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import LINKS, constraints, gemm, network, register_core
from tests.unit.multi_core.runs import done

ENTRIES = {ARRAY_MODELS.owner: {"serial": f"{__name__}:Serial", "doubled": f"{__name__}:Doubled"}}
EXAMPLES = Path(__file__).parents[3] / "config"
LAYER = gemm(C=4, D=6, K=4)
DIGITAL = register_core()
ARRAY = replace(DIGITAL.operational_array, kind="serial", parameters=(("converter_pj", 3.0), ("area_mm2", 0.5)))
CORE = replace(DIGITAL, operational_array=ARRAY)


class _Serial:
    """A bit-serial array: cells cost energy for each operation, converters for each set of operations done at once."""

    terms = ("cells", "converters")

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Return the energies of cells and of converters; one converter serves the lanes that are added up."""
        converter_pj = dict(array.parameters)["converter_pj"]
        return array.unit_energy_pj * work.operations, converter_pj * work.operations / self._lanes(work)

    def cycles_per_operation(self, array: OperationalArray) -> int:
        """Return two cycles: four bits at two bits a cycle."""
        return 2

    def area_mm2(self, array: OperationalArray) -> float | None:
        """Return the area of the file."""
        return dict(array.parameters)["area_mm2"]

    def area_breakdown_mm2(self, array: OperationalArray) -> dict[str, float]:
        """Return no parts of the area."""
        return {}

    def clock_period_ns(self, array: OperationalArray) -> float | None:
        """Return None: the clock period is unknown."""
        return None

    def clock_breakdown_ns(self, array: OperationalArray) -> dict[str, float]:
        """Return no parts of the clock period."""
        return {}

    def refusal(self, array: OperationalArray, work: ArrayWork) -> str:
        """Refuse banks whose number of lanes is no power of two."""
        lanes = self._lanes(work)
        return "" if lanes & (lanes - 1) == 0 else f"a bank of {lanes} lanes is no power of two"

    @staticmethod
    def _lanes(work: ArrayWork) -> int:
        lanes = 1
        for factors in work.unrolling.values():
            lanes *= factors.get("C", 1)
        return lanes


Serial = _Serial()


class _Doubled(Digital):
    """An array whose units do each operation twice."""

    def energies_pj(self, array: OperationalArray, work: ArrayWork) -> tuple[float, ...]:
        """Return twice the energies of a digital array."""
        return tuple(2 * energy for energy in super().energies_pj(array, work))


Doubled = _Doubled()


@pytest.fixture(autouse=True)
def serial() -> Iterator[None]:
    """Register the kind of array while a test runs."""
    enter(ENTRIES)
    yield
    withdraw(ENTRIES)


def test_energy_cycles_and_area_are_those_of_the_model() -> None:
    """Records, sums, checks, tables and figures have the two energy terms and the area of the model."""
    mapped = map_workload(network([LAYER]), CORE, Mapping((MappingConstraints("default"),)), SearchOptions())
    (record,) = mapped.records
    lanes = Serial._lanes(ArrayWork(0, record.spatial_mapping))
    assert list(record.energy_terms_pj) == ["cells", "converters", "memory"]
    assert record.energy_terms_pj["cells"] == ARRAY.unit_energy_pj * LAYER.mac_count
    assert record.energy_terms_pj["converters"] == pytest.approx(3.0 * LAYER.mac_count / lanes)
    assert record.cycles_per_operation == 2
    assert failure_message(check_run(mapped.records, mapped.summary, CORE)) == ""
    row = layer_table(mapped.records, mapped.summary)
    assert {"cells_energy_pj", "converters_energy_pj", "memory_energy_pj"} <= set(row)
    assert run_row("run", mapped.summary)["cells_energy_pj"] == record.energy_terms_pj["cells"]
    texts = {text.get_text() for legend in energy_figure(mapped.records).legends for text in legend.get_texts()}
    assert {"cells", "converters"} <= texts
    without_memories = replace(CORE, memories=tuple(replace(memory, area_mm2=0.25) for memory in CORE.memories))
    assert core_area(without_memories).mm2 is not None


def test_cycles_are_those_of_operations() -> None:
    """A layer takes twice the ideal cycles of a digital array, with the same accesses to memories."""
    unrolling = (("D1", ()),)
    order = (("C", 4), ("D", 6), ("K", 4))
    own, usual = (evaluate(LAYER, core, LINKS, unrolling, order) for core in (CORE, DIGITAL))
    for part in ("ideal", "spatial_stall"):
        assert own.latency_breakdown_cycles[part] == 2 * usual.latency_breakdown_cycles[part]
    assert own.latency_breakdown_cycles["temporal_stall"] <= usual.latency_breakdown_cycles["temporal_stall"]
    assert own.word_accesses == usual.word_accesses


def test_the_model_refuses_spatial_mappings() -> None:
    """A spatial mapping that the array refuses raises an error with the reason."""
    with pytest.raises(MappingError, match="a bank of 3 lanes is no power of two"):
        evaluate(gemm(C=3, D=2, K=2), CORE, LINKS, (("D1", (("C", 3),)),), (("D", 2), ("K", 2)))


def test_a_kind_without_a_model_is_refused() -> None:
    """A core whose kind of array has no model is refused."""
    unknown = replace(CORE, operational_array=replace(ARRAY, kind="optical"))
    with pytest.raises(MappingError, match="no model of optical arrays"):
        map_layer(LAYER, unknown, constraints(), SearchOptions())


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("size", [{"C": 4, "D": 6, "K": 4}, {"C": 8, "D": 4, "K": 9}, {"C": 12, "D": 2, "K": 6}])
def test_the_exact_search_finds_the_optimum(objective: str, size: dict[str, int]) -> None:
    """The exact search proves its optimum, which equals the best cost of the other searches."""
    layer, core = gemm(**size), replace(register_core(buffer_bits=300), operational_array=ARRAY)
    options = SearchOptions(objective=objective)
    tried = [map_layer(layer, core, constraints(), replace(options, lpf_limit=limit)) for limit in (None, 2, 3, 4, 5)]
    exact = map_layer(layer, core, constraints(), replace(options, temporal_mapping_search_engine="exact"))
    assert exact.search["proven"]
    found = [OBJECTIVES[objective].value(record.energy_pj, record.latency_cycles) for record in (exact, *tried)]
    assert found[0] == pytest.approx(min(found[1:]), rel=1e-12)


LAYERS = """
- {id: 0, name: product, operator_type: Conv, equation: "O[d][k]+=I[d][c]*W[c][k]", loop_dims: [D, K, C],
   loop_sizes: [4, 8, 6], operand_precision: {O: 16, O_final: 8, I: 8, W: 8}, operand_source: {I: 0, W: 0}}
- {id: 1, name: sum, operator_type: Add, equation: "O[d][k]+=I[d][k]*W[d][k]", loop_dims: [D, K],
   loop_sizes: [4, 8], operand_precision: {O: 16, O_final: 8, I: 8, W: 8}, operand_source: {I: 0, W: 1}}
"""


@pytest.mark.usefixtures("unpainted")
def test_a_file_of_a_further_kind_runs_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network with vector layers runs on a new kind of array.
    All figures equal those of a digital array, except the energy of operations.
    """
    (tmp_path / "net.yaml").write_text(LAYERS)
    hardware, mapping = str(EXAMPLES / "hardware/zigzag/tpu_like.yaml"), str(EXAMPLES / "mapping/zigzag/tpu_like.yaml")
    inputs = ["--hardware", hardware, "--workload", str(tmp_path / "net.yaml")]
    found = []
    for kind in ("digital", "doubled"):
        monkeypatch.setattr(core_reader, "array_kind", lambda _, kind=kind: kind)
        run = tmp_path / kind
        done(["map", "--preset", "zigzag", *inputs, "--mapping", mapping, "--lpf-limit", "3", "-o", str(run)])
        done(["check", str(run), "--hardware", hardware])
        done(["report", str(run), "-o", str(run / "report")])
        for form in ("complete-json", "simple-json"):
            done(["export", str(run), "--format", form, *inputs, "-o", str(run / form)])
        (core,) = parse_accelerator(Path(hardware)).cores
        assert core.area_unit == NO_UNIT
        exported = json.loads((run / "complete-json" / "product_complete.json").read_text())
        summary = json.loads((run / "summary.json").read_text())["payload"]
        found.append((summary, exported["inputs"]["accelerator"]["operational_array"]))
    (digital, digital_array), (doubled, doubled_array) = found
    assert doubled["mac_energy_pj"] == 2 * digital["mac_energy_pj"] > 0
    assert doubled_array == digital_array
    for name in ("memory_energy_pj", "latency_cycles"):
        assert doubled[name] == digital[name]
