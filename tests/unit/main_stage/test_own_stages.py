"""Stages of users in the form of zigzag-dse: their changes and results, and faults with file and line."""

import dataclasses
import inspect
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.main_stage import (
    AcceleratorParserStage,
    CostModelStage,
    LomaStage,
    MainStage,
    MinimalEnergyStage,
    MinimalLatencyStage,
    SimpleSaveStage,
    SpatialMappingConversionStage,
    SpatialMappingGeneratorStage,
    Stage,
    SumStage,
    WorkloadParserStage,
    WorkloadStage,
)

from tests.unit.main_stage import own_stages as own
from tests.unit.main_stage.conftest import files

LPF = 4
PARSERS = [WorkloadParserStage, AcceleratorParserStage]
LOMA = [LomaStage, CostModelStage]
BELOW = [MinimalLatencyStage, SpatialMappingGeneratorStage, MinimalLatencyStage, *LOMA]


def run(*stages: Any, **keywords: Any) -> list[tuple[Any, Any]]:
    """Run a script with these stages and return its results."""
    found: list[tuple[Any, Any]] = MainStage(
        [*PARSERS, *stages], **{**files(), "loma_lpf_limit": LPF, **keywords}
    ).run()
    return found


@cache
def plain() -> list[tuple[str, float, float]]:
    """Return layer, energy and latency as `tilewright.map` computes them."""
    given = files()
    mapped = tilewright.map(given["workload"], given["accelerator"], given["mapping"], preset="zigzag", lpf_limit=LPF)
    found = {name: record for record in mapped.records for name in record.names}
    names = [cme.layer.name for cme, _ in run(WorkloadStage, *BELOW)]
    return [(name, found[name].energy_pj, found[name].latency_cycles) for name in names]


def figures(pairs: list[tuple[Any, Any]]) -> list[tuple[str, float, float]]:
    """Return layer, energy and latency of each evaluation."""
    return [(cme.layer.name, cme.energy_total, cme.latency_total2) for cme, _ in pairs]


def line_of(kind: type[Stage], text: str) -> int:
    """Return the number of the line with a text in a class."""
    lines, first = inspect.getsourcelines(kind)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_a_reduction_by_another_metric() -> None:
    """A reduction of a user sees all evaluations; its extra information is kept unless a later reduction drops it."""
    reduced = run(WorkloadStage, MinimalLatencyStage, SpatialMappingGeneratorStage, own.LeastAccesses, *LOMA)
    assert [said for _, (_, said) in reduced] == [[]] * len(reduced)
    pairs = run(WorkloadStage, SpatialMappingGeneratorStage, own.LeastAccesses, *LOMA)
    for cme, (layer, (mapping, said)) in pairs:
        assert mapping == cme.user_spatial_mapping
        all_of_them = run(WorkloadStage, SpatialMappingGeneratorStage, *LOMA)
        words = [sum(level.rd_out_to_low for level in one.memory_word_access["W"]) for one, (of, _) in all_of_them
                 if of.name == layer.name]  # fmt: skip
        assert said == {"words": min(words)}
        assert sum(level.rd_out_to_low for level in cme.memory_word_access["W"]) == min(words)
        break  # all mappings of all layers are many


@pytest.mark.parametrize("place", ["above", "below"])
def test_a_filter_leaves_layers_out(place: str) -> None:
    """A filter drops slow layers, and a sum includes only the remaining ones."""
    most = sorted(cycles for _, _, cycles in plain())[3]
    stages = (own.FastEnough, WorkloadStage) if place == "above" else (WorkloadStage, own.FastEnough)
    expected = [row for row in plain() if row[2] <= most]
    assert figures(run(*stages, *BELOW, most_cycles=most)) == expected
    ((total, pairs),) = run(SumStage, *stages, *BELOW, most_cycles=most)
    assert figures(pairs) == expected
    assert total.latency_total2 == sum(row[2] for row in expected)
    assert total.energy_total == pytest.approx(sum(row[1] for row in expected))


def test_a_filter_below_a_reduction_that_leaves_nothing_is_told() -> None:
    """A filter that leaves nothing for a reduction is an error with file and line of the filter."""
    with pytest.raises(tilewright.InputError, match=r"own_stages.py:\d+ FastEnough: yielded nothing for layer"):
        run(WorkloadStage, MinimalLatencyStage, own.FastEnough, *BELOW[1:], most_cycles=1)


@pytest.mark.parametrize("place", ["above", "below"])
def test_a_stage_varies_the_accelerator(place: str) -> None:
    """A stage that varies memory energies gives the results of a file with these energies."""
    stages = (own.DearerMemories, WorkloadStage) if place == "above" else (WorkloadStage, own.DearerMemories)
    pairs = run(*stages, *BELOW)
    given = files()
    core = tilewright.parse_accelerator(given["accelerator"]).cores[0]
    dear = tilewright.parse_accelerator(given["accelerator"])
    memories = tuple(
        _replace(memory, read_energy_pj=2 * memory.read_energy_pj, write_energy_pj=2 * memory.write_energy_pj)
        for memory in core.memories
    )
    dear = _replace(dear, cores=(_replace(core, memories=memories),))
    mapped = tilewright.map(given["workload"], dear, given["mapping"], preset="zigzag", lpf_limit=LPF)
    expected = {name: record.energy_pj for record in mapped.records for name in record.names}
    factor_of = (lambda extra: extra[0]) if place == "above" else (lambda extra: extra[1][0])
    found = {cme.layer.name: cme.energy_total for cme, extra in pairs if factor_of(extra) == 2}
    assert found == expected
    once = [(cme, extra) for cme, extra in pairs if factor_of(extra) == 1]
    assert figures(once) == plain()


def test_each_variant_has_its_sum() -> None:
    """A stage that runs SumStage twice gets two sums, and each sum has every layer once."""
    totals = run(own.DearerMemories, SumStage, WorkloadStage, *BELOW)
    assert [len(total.parts) for total, _ in totals] == [7, 7]
    assert totals[0][0].latency_total2 == sum(row[2] for row in plain())
    assert totals[1][0].energy_total > totals[0][0].energy_total


def test_a_reduction_above_chooses_between_variants() -> None:
    """MinimalEnergyStage above a varying stage keeps the cheaper accelerator."""
    pairs = run(WorkloadStage, MinimalEnergyStage, own.DearerMemories, *BELOW)
    assert figures(pairs) == plain()


def test_one_that_yields_twice() -> None:
    """A stage that yields twice doubles the results above the layers; below them, a sum has each layer once."""
    assert figures(run(own.Twice, WorkloadStage, *BELOW)) == [row for row in plain() for _ in range(2)]
    ((total, _),) = run(SumStage, WorkloadStage, BELOW[0], own.Twice, *BELOW[1:])
    assert total.latency_total2 == sum(row[2] for row in plain())


@pytest.mark.parametrize("place", range(3))
def test_one_that_raises_is_told_with_file_and_line(place: int) -> None:
    """An error of a stage at any place is reported with file and line."""
    stages: list[Any] = [WorkloadStage, *BELOW]
    stages.insert((0, 1, len(stages) - 2)[place], own.Raises)
    with pytest.raises(tilewright.InputError) as error:
        run(*stages)
    (problem,) = error.value.problems
    assert Path(problem.file).name == "own_stages.py"
    assert problem.line == line_of(own.Raises, "the line that is told")
    assert problem.message.startswith("KeyError: ")


def test_one_that_yields_nothing_and_one_that_returns_nothing() -> None:
    """A stage that yields nothing drops all results; one that returns None is an error with its line."""
    assert run(own.YieldsNothing, WorkloadStage, *BELOW) == []
    assert run(WorkloadStage, own.YieldsNothing, *BELOW) == []
    with pytest.raises(tilewright.InputError) as error:
        run(own.ReturnsNothing, WorkloadStage, *BELOW)
    (problem,) = error.value.problems
    assert (Path(problem.file).name, problem.line) == ("own_stages.py", line_of(own.ReturnsNothing, "def run"))
    with pytest.raises(tilewright.InputError, match=r"YieldsNumbers: run yielded .* it must yield pairs"):
        run(WorkloadStage, own.YieldsNumbers, *BELOW)


@pytest.mark.parametrize("place", ["above", "below", "lowest"])
def test_figures_that_a_stage_sets_count(place: str, tmp_path: Path) -> None:
    """Figures that a stage changes are reduced, added up and saved by the stages above it."""
    stages: list[Any] = [WorkloadStage, *BELOW]
    stages.insert({"above": 0, "below": 1, "lowest": len(stages) - 2}[place], own.Penalty)
    pairs = run(*stages)
    assert figures(pairs) == [(name, pytest.approx(1.5 * energy), cycles) for name, energy, cycles in plain()]
    assert {cme.mine for cme, _ in pairs} == {"kept"}
    folder = tmp_path / "saved"
    ((total, _),) = run(SimpleSaveStage, SumStage, *stages, dump_folder=str(folder))
    assert total.energy_total == pytest.approx(1.5 * sum(row[1] for row in plain()))
    assert f'"energy": {total.energy_total}' in (folder / "overall_simple.json").read_text()


def test_one_that_changes_the_temporal_mapping() -> None:
    """A stage that changes loop orders gives the costs of a mapping file with these orders."""
    stages = [
        WorkloadStage,
        SpatialMappingGeneratorStage,
        MinimalEnergyStage,
        LomaStage,
        own.SwapsLoops,
        CostModelStage,
    ]
    given = files()
    pairs = run(*stages, loma_lpf_limit=3)
    text = tilewright.export_mapping([cme.record for cme, _ in pairs], given["accelerator"])
    mapped = tilewright.map(given["workload"], given["accelerator"], yaml.safe_load(text), preset="zigzag")
    found = {name: record for record in mapped.records for name in record.names}
    assert figures(pairs) == [(name, found[name].energy_pj, found[name].latency_cycles) for name, _, _ in plain()]


def test_one_that_changes_the_spatial_mapping() -> None:
    """A stage that sets spatial mappings gives results with these mappings."""
    chosen = {"D1": {"K": 2}, "D2": {"OX": 2}}
    stages = [WorkloadStage, own.GivenSpatialMapping, SpatialMappingConversionStage, MinimalLatencyStage, *LOMA]
    pairs = run(*stages, spatial_mapping_of_mine=chosen)
    convolutions = [cme for cme, _ in pairs if "K" in cme.layer.layer_dims]
    assert convolutions
    assert {str(cme.user_spatial_mapping["D1"]) for cme in convolutions} == {"{'K': 2}"}


def test_one_that_looks_at_every_cme() -> None:
    """A stage that counts evaluations sees as many as there are orders and keeps the results."""
    own.Counts.seen.clear()
    stages = [WorkloadStage, MinimalLatencyStage, SpatialMappingGeneratorStage, MinimalLatencyStage, own.Counts, *LOMA]
    assert figures(run(*stages)) == plain()
    given = files()
    mapped = tilewright.map(given["workload"], given["accelerator"], given["mapping"], preset="zigzag", lpf_limit=LPF)
    counts = {name: record.evaluations or 0 for record in mapped.records for name in record.names}
    assert len(own.Counts.seen) == sum(counts.values())
    own.Counts.seen.clear()
    assert figures(run(*stages[:4], LomaStage, own.Counts, CostModelStage)) == plain()
    assert len(own.Counts.seen) == sum(counts.values())


@pytest.mark.parametrize("place", range(1, 6))
def test_what_stages_say_comes_through(place: int) -> None:
    """A stage that passes everything on, at any place, changes no extra information."""
    stages: list[Any] = [WorkloadStage, SpatialMappingGeneratorStage, LomaStage, CostModelStage]
    reduced = [WorkloadStage, SpatialMappingGeneratorStage, MinimalLatencyStage, *LOMA]
    for plain_stages in (stages, reduced):
        if place >= len(plain_stages):
            continue
        with_it = [*plain_stages[:place], own.Counts, *plain_stages[place:]]
        assert said_by(*with_it) == said_by(*plain_stages)


@cache
def said_by(*stages: Any) -> tuple[list[str], list[tuple[str, float, float]]]:
    """Return the extra information and figures of all mappings of three layers, two of them equal."""
    layers = yaml.safe_load(Path(files()["workload"]).read_text("utf-8"))[2:5]
    layers[0]["operand_source"]["I"] = layers[0]["id"]
    network = Path("three_layers.yaml").absolute()
    network.write_text(yaml.safe_dump(layers), "utf-8")
    pairs = run(*stages, loma_lpf_limit=2, workload=str(network))
    assert len(pairs) >= len(layers)
    return [str(extra) for _, extra in pairs], figures(pairs)


def test_a_keyword_that_a_stage_of_a_users_needs() -> None:
    """A missing keyword of a user's stage is reported with the stage before the run."""
    with pytest.raises(tilewright.InputError, match="spatial_mapping_of_mine: GivenSpatialMapping needs this keyword"):
        run(WorkloadStage, own.GivenSpatialMapping, *BELOW)


def test_tables_of_a_layer_cannot_be_changed() -> None:
    """A stage that changes a table of a layer is refused with its file and line."""
    with pytest.raises(tilewright.InputError, match=r"own_stages.py:\d+ ChangesSizes: TypeError: this table cannot be"):
        run(WorkloadStage, own.ChangesSizes, *BELOW)


@pytest.mark.parametrize("place", [0, 1])
def test_one_that_keeps_a_keyword_to_itself_is_named(place: int) -> None:
    """A stage that does not pass on a keyword is named with its line."""
    stages: list[Any] = [WorkloadStage, *BELOW]
    stages.insert(place, own.Forgets)
    with pytest.raises(tilewright.InputError, match=r"own_stages.py:\d+ Forgets: accelerator was not passed on"):
        run(*stages)


def test_memories_and_sides_of_the_array_are_changed() -> None:
    """A stage that removes a memory and changes the array gives the results of a file with these changes."""
    given = files()
    described = tilewright.parse_accelerator(given["accelerator"])
    core = described.cores[0]
    memories = tuple(memory for memory in core.memories if memory.name != "input_pad")
    array = _replace(core.operational_array, dimensions=(("D1", 6), *core.operational_array.dimensions[1:]))
    changed = _replace(described, cores=(_replace(core, memories=memories, operational_array=array),))
    mapped = tilewright.map(given["workload"], changed, given["mapping"], preset="zigzag", lpf_limit=LPF)
    found = {name: record for record in mapped.records for name in record.names}
    pairs = run(own.SmallerCore, WorkloadStage, *BELOW)
    assert figures(pairs) == [(name, found[name].energy_pj, found[name].latency_cycles) for name, _, _ in plain()]


def _replace(value: Any, **others: Any) -> Any:
    return dataclasses.replace(value, **others)
