"""Keywords of scripts: their spellings, their effects, and messages about unknown or missing keywords."""

import json
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright import main_stage
from tilewright.main_stage import MainStage
from tilewright.main_stage.keywords import KEYWORDS, NO_COUNTERPART
from tilewright.main_stage.support import SUPPORT

from tests.unit.main_stage.conftest import files

ONE_CORE = "WorkloadParserStage AcceleratorParserStage WorkloadStage MinimalLatencyStage SpatialMappingGeneratorStage"
ONE_CORE += " MinimalLatencyStage LomaStage CostModelStage"


def run(names: str, **keywords: Any) -> Any:
    """Run a script with these stages and return its results."""
    return MainStage([getattr(main_stage, name) for name in names.split()], **keywords).run()


def told(names: str, **keywords: Any) -> dict[str, str]:
    """Return keyword -> its problem."""
    with pytest.raises(tilewright.InputError) as error:
        run(names, **keywords)
    return {problem.path: str(problem) for problem in error.value.problems}


@pytest.mark.parametrize(
    "names", [("accelerator_path", "workload_path", "mapping_path"), ("accelerator", "workload", "mapping")]
)
def test_files_in_every_spelling(names: tuple[str, ...]) -> None:
    """Both spellings of the file keywords give the same results."""
    given = dict(zip(names, files().values(), strict=True))
    pairs = run(ONE_CORE, **given, loma_lpf_limit=3)
    assert len(pairs) == 7
    assert [cme.energy_total for cme, _ in pairs] == [
        cme.energy_total for cme, _ in run(ONE_CORE, **files(), lpf_limit=3)
    ]


def test_every_problem_at_once() -> None:
    """Unknown, misplaced, repeated and missing keywords are reported together, each with its stage or nearest name."""
    found = told(
        ONE_CORE,
        accelerator=files()["accelerator"],
        accelerator_path=files()["accelerator"],
        workload=files()["workload"],
        loma_lpf_limt=6,
        nb_ga_generations=3,
        enable_weight_diagonal_mapping=True,
    )
    assert "did you mean 'loma_lpf_limit'" in found["loma_lpf_limt"]
    assert "InterCoreMappingStage reads it" in found["nb_ga_generations"]
    assert "is another spelling of accelerator" in found["accelerator_path"]
    assert "WorkloadParserStage needs this keyword, but it is not given" in found["mapping"]
    assert "no counterpart" in found["enable_weight_diagonal_mapping"]
    assert len(found) == 5


def test_wrong_values_are_told_at_the_keyword_as_it_was_spelt() -> None:
    """A wrong value is reported at the keyword as the script spells it."""
    found = told(ONE_CORE, **files(), loma_lpf_limit=0, nb_mappings_generated="many")
    assert set(found) == {"loma_lpf_limit", "nb_mappings_generated"}
    assert "loma_lpf_limit: " in found["loma_lpf_limit"]


@pytest.mark.parametrize("name", NO_COUNTERPART)
def test_what_has_no_counterpart_may_be_off(name: str) -> None:
    """A keyword without a counterpart is accepted with the value None."""
    assert run(ONE_CORE, **files(), loma_lpf_limit=3, **{name: None})


def test_a_save_needs_its_place() -> None:
    """The message about a missing place for saved files names the stage."""
    found = told(f"WorkloadParserStage SimpleSaveStage PickleSaveStage {ONE_CORE.partition(' ')[2]}", **files())
    assert "SimpleSaveStage needs this keyword" in found["dump_folder"]
    assert "PickleSaveStage needs this keyword" in found["pickle_filename"]


def test_places_of_files() -> None:
    """Results are saved to a folder, to a pattern with or without the mark of layers, and to a pickle."""
    rest = ONE_CORE.partition(" ")[2]
    saved = ONE_CORE.replace("WorkloadStage", "SimpleSaveStage PickleSaveStage SumStage WorkloadStage")
    run(saved, **files(), loma_lpf_limit=3, dump_folder="a", pickle_filename="b/c.pickle")
    assert Path("a/overall_simple.json").is_file()
    assert Path("b/c.pickle").is_file()
    run(f"WorkloadParserStage CompleteSaveStage {rest}", **files(), loma_lpf_limit=3, dump_filename_pattern="d/?.json")
    assert len(list(Path("d").glob("*_complete.json"))) == 7
    run(
        f"WorkloadParserStage SimpleSaveStage {rest}",
        **files(),
        loma_lpf_limit=3,
        filename_pattern="e/{loma_lpf_limit}.json",
    )
    assert len(json.loads(Path("e/3.json").read_text())) == 7


def test_a_pattern_without_a_mark_loses_nothing() -> None:
    """A file pattern without a mark gives one list of all evaluations, also below the layers and for several runs."""
    below = ONE_CORE.replace("WorkloadStage", "WorkloadStage CompleteSaveStage")
    pairs = run(below, **files(), loma_lpf_limit=3, dump_filename_pattern="f/all.json")
    saved = json.loads(Path("f/all.json").read_text())
    assert {one["inputs"]["layer"]["name"] for one in saved} >= {cme.layer.name for cme, _ in pairs[:3]}
    assert len(saved) >= len({cme.energy_total for cme, _ in pairs})
    twice = (
        f"GeneralParameterIteratorStage {ONE_CORE.replace('WorkloadStage', 'SimpleSaveStage SumStage WorkloadStage')}"
    )
    iterations = {"loma_lpf_limit": [2, 3]}
    pairs = run(twice, **files(), general_parameter_iterations=iterations, dump_filename_pattern="g/all.json")
    assert [one["energy"] for one in json.loads(Path("g/all.json").read_text())] == [
        cme.energy_total for cme, _ in pairs
    ]


def test_others_are_kept_where_a_script_wants_them() -> None:
    """`reduce_minimal_keep_others` returns, beside each kept evaluation, those from which it was chosen."""
    pairs = run(ONE_CORE, **files(), loma_lpf_limit=3, reduce_minimal_keep_others=True)
    for cme, (_, others) in pairs:
        assert min(other.latency_total2 for other, _ in others) == cme.latency_total2
        assert all(len(inner) >= 1 for _, inner in others)


def test_every_keyword_has_a_stage_that_reads_it() -> None:
    """Each keyword is read by a known stage, and is a parameter or has an explanation."""
    readers = {kind.ours for kind in main_stage.CLASSES.values()}
    for keyword in KEYWORDS:
        assert set(keyword.stages) <= readers, keyword.name
        assert keyword.parameter or keyword.says, keyword.name
    spellings = [spelling for keyword in KEYWORDS for spelling in keyword.spellings]
    assert len(spellings) == len(set(spellings))


def test_parameters_are_varied() -> None:
    """GeneralParameterIteratorStage runs each combination of values and files; the first keyword is the slowest."""
    pairs = run(
        ONE_CORE.replace("WorkloadParser", "GeneralParameterIteratorStage WorkloadParser").replace(
            "WorkloadStage", "SumStage WorkloadStage"
        ),
        **{name: file for name, file in files().items() if name != "accelerator"},
        general_parameter_iterations={
            "accelerator": [files()["accelerator"], files("cube_8x4x3")["accelerator"]],
            ("loma_lpf_limit", "nb_mappings_generated"): [(2, 1), (3, 2)],
        },
    )
    assert [said[0][0][0] for _, said in pairs] == ["accelerator"] * 4
    assert [said[0][1] for _, said in pairs] == [
        (("loma_lpf_limit", 2), ("nb_mappings_generated", 1)),
        (("loma_lpf_limit", 3), ("nb_mappings_generated", 2)),
    ] * 2
    assert pairs[0][0].energy_total != pairs[2][0].energy_total


@pytest.mark.parametrize("name", sorted(SUPPORT.keys() - {"GeneralParameterIteratorStage", "SkipIfDumpExistsStage"}))
def test_stages_that_pass_everything_on(name: str) -> None:
    """A supporting stage at any place leaves the results as they are."""
    names = ONE_CORE.split()
    plain = run(ONE_CORE, **files(), loma_lpf_limit=3)
    for place in (2, 3, 4):
        pairs = run(" ".join([*names[:place], name, *names[place:]]), **files(), loma_lpf_limit=3)
        assert [cme.energy_total for cme, _ in pairs] == [cme.energy_total for cme, _ in plain]


def test_a_dump_that_exists_is_skipped() -> None:
    """SkipIfDumpExistsStage skips a run whose dump exists."""
    names = f"SkipIfDumpExistsStage WorkloadParserStage {ONE_CORE.partition(' ')[2]}"
    assert len(run(names, **files(), loma_lpf_limit=3, dump_folder="there.json")) == 7
    Path("there.json").write_text("{}")
    assert run(names, **files(), loma_lpf_limit=3, dump_folder="there.json") == []


def test_no_stage_and_unknown_stages() -> None:
    """An empty list of stages and an unknown stage are errors."""
    with pytest.raises(tilewright.InputError, match="the list has no stage"):
        MainStage([]).run()
    with pytest.raises(AttributeError, match="did you mean LomaStage"):
        _ = main_stage.LomaStages
