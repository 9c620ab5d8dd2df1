"""Presets of the options of `map` set options that are not given; given options overrule them."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.base.parameters import made_of
from tilewright.cli.config import read_config
from tilewright.cli.main import main
from tilewright.cli.map import map_workload
from tilewright.cli.parameter_options import Given, Named
from tilewright.search.options import MapOptions, SearchOptions

TINY = Path("tests/workflow/tiny").resolve()
DESCRIBED = [
    str(TINY / "workload/two_layers.yaml"),
    str(TINY / "hardware/narrow.yaml"),
    str(TINY / "mapping/free.yaml"),
]
FILES = [word for pair in zip(("--workload", "--hardware", "--mapping"), DESCRIBED, strict=True) for word in pair]
OTHER_VALUES = {
    "model": ("corrected", "zigzag-3.9.1"),
    "objective": ("latency", "energy", "EDP"),
    "temporal_mapping_search_engine": ("loma", "salsa", "exact", "best"),
    "exploit_data_locality": (True, False),
    "bounds": (True, False),
    "lpf_limit": (3, 6, None),
    "seed": (0, 7),
}


def test_the_default_is_to_decide_by() -> None:
    """`map` has by default the model, objective, engine and data locality of the preset `best`."""
    options = MapOptions()
    found = options.model, options.objective, options.temporal_mapping_search_engine, options.exploit_data_locality
    assert found == ("corrected", "EDP", "best", True)
    assert MapOptions(preset="best").part(SearchOptions) == options.part(SearchOptions)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_given_overrules_what_the_preset_implies(seed: int) -> None:
    """Each option has the given value, or that of the preset, also if the given value is the class's default.

    Random options are given to the class, on a command line, by name in Python, and over an object.
    """
    draw = random.Random(seed)
    given = {name: draw.choice(values) for name, values in OTHER_VALUES.items() if draw.random() < 0.5}
    expected = SearchOptions(**given)
    made = MapOptions(preset="zigzag", **given)
    assert made.part(SearchOptions) == expected
    assert made_of(MapOptions, {"preset": "zigzag", **given}) == made
    assert replace(made, seed=made.seed) == made
    texts = {name: value if isinstance(value, bool) else str(value).lower() for name, value in given.items()}
    texts |= {name: given[name] for name in ("objective", "model") if name in given}
    assert Given(MapOptions, {"preset": "zigzag", **texts})() == made
    assert Named(MapOptions, {"preset": "zigzag"}).over(MapOptions(**given)).values.keys() <= {"preset", *given}
    assert Named(MapOptions, {}).over(made)() == made
    assert Named(MapOptions, {}).over(expected)().part(SearchOptions) == expected, "an object of the other class, too"


def test_a_wrong_preset_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong preset is reported with the allowed ones, together with other errors."""
    assert main(["map", *FILES, "--preset", "zigzga", "--objective", "speed"]) == 2
    said = capsys.readouterr().err
    assert "preset: unknown value, got 'zigzga'" in said
    assert "did you mean 'zigzag'?" in said
    assert "objective: unknown value" in said
    with pytest.raises(InputError, match="preset"):
        map_workload(*DESCRIBED, preset=3)


def test_a_run_of_the_preset_is_that_of_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of the preset has the same bytes as a run with its options: artifacts do not name the preset."""
    written_out = ["--model", "zigzag-3.9.1", "--objective", "latency", "--temporal-mapping-search-engine", "loma"]
    written_out += ["--no-exploit-data-locality", "--no-bounds", "--lpf-limit", "6"]
    for name, options in (("preset", ["--preset", "zigzag"]), ("options", written_out)):
        assert main(["map", *FILES, *options, "--no-store", "-o", str(tmp_path / name)]) == 0
    files = sorted(path.name for path in (tmp_path / "preset").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "options").iterdir())
    for name in files:
        assert (tmp_path / "preset" / name).read_bytes() == (tmp_path / "options" / name).read_bytes(), name
    assert "no effect" not in capsys.readouterr().err


def test_options_of_another_search_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Options of another search are reported as without effect; options that the preset itself sets are not."""
    assert main(["map", *FILES, "--lpf-limit", "4", "--no-store"]) == 0
    told = "--lpf-limit: has no effect with --temporal-mapping-search-engine best, got 4"
    assert told in capsys.readouterr().err
    assert main(["map", *FILES, "--preset", "zigzag", "--effort", "9", "--no-store"]) == 0
    told = "--effort: has no effect with --temporal-mapping-search-engine loma, got 9"
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines() if "no effect" in line] == [told]


def test_a_pipeline_has_the_values_of_zigzag() -> None:
    """A pipeline has the values of the preset `zigzag`, unless another preset or an option is given; edits name its
    stages.
    """
    edits = [{"set": "Loma", "parameters": {"lpf_limit": 3}}]
    found = map_workload(*DESCRIBED, pipeline=edits)
    assert found == map_workload(*DESCRIBED, preset="zigzag", lpf_limit=3)
    changed = map_workload(*DESCRIBED, pipeline=edits, objective="energy", model="corrected")
    assert changed == map_workload(*DESCRIBED, preset="zigzag", lpf_limit=3, objective="energy", model="corrected")
    with pytest.raises(InputError, match="Loma"):
        map_workload(*DESCRIBED, pipeline=edits, preset="best")
    best = map_workload(*DESCRIBED, pipeline=[{"set": "Best", "parameters": {"effort": 1}}], preset="best")
    assert best.summary["certificate"]["of"] == len(best.records)


def test_presets_of_a_configuration(tmp_path: Path) -> None:
    """The preset of a run overrules options at the top; a preset at the top does not overrule these options.

    A run with a pipeline has the preset `zigzag`.
    """
    file = tmp_path / "config.yaml"
    run = f"workload: {DESCRIBED[0]}, hardware: {DESCRIBED[1]}, mapping: {DESCRIBED[2]}"
    edit = "pipeline: [{set: Loma, parameters: {lpf_limit: 3}}]"
    file.write_text(
        f"objective: energy\nmodel: corrected\nruns:\n  plain: {{{run}}}\n  zigzag: {{{run}, preset: zigzag}}\n"
        f"  both: {{{run}, preset: zigzag, objective: EDP}}\n  staged: {{{run}, {edit}}}\n"
    )
    plan = read_config(str(file))
    found = {
        run.name: (run.options.model, run.options.objective, run.options.temporal_mapping_search_engine)
        for run in plan.runs
    }
    assert found == {
        "plain": ("corrected", "energy", "best"),
        "zigzag": ("zigzag-3.9.1", "latency", "loma"),
        "both": ("zigzag-3.9.1", "EDP", "loma"),
        "staged": ("corrected", "energy", "loma"),
    }
    file.write_text(f"preset: zigzag\nobjective: energy\nruns:\n  plain: {{{run}}}\n  best: {{{run}, preset: best}}\n")
    plain, best = (run.options for run in read_config(str(file)).runs)
    assert (plain.model, plain.objective, plain.exploit_data_locality) == ("zigzag-3.9.1", "energy", False)
    assert (best.model, best.objective, best.exploit_data_locality) == ("corrected", "energy", True)


def test_the_text_says_what_was_searched(capsys: pytest.CaptureFixture[str]) -> None:
    """The text says how many mappings were costed, or how many partial loop orders a search with bounds looked at."""
    words = ["--objective", "latency", "--no-store"]
    assert main(["map", *FILES, "--preset", "zigzag", *words]) == 0
    assert "mappings evaluated)" in capsys.readouterr().out
    assert main(["map", *FILES, *words, "--temporal-mapping-search-engine", "exact"]) == 0
    assert "partial loop orders searched)" in capsys.readouterr().out
