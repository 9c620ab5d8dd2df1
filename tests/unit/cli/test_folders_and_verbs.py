"""Each verb that reads a results folder is called on folders of all kinds: it succeeds or names the right verb.

Each Python function is called with each kind of result.
"""

import contextlib
import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.cli.main import main

from tests.unit.cli.multi_core import GA, cut_and_cost, given, inputs, write_network

pytestmark = pytest.mark.usefixtures("unpainted")

PROJECT = Path(__file__).resolve().parents[3]
HARDWARE, MAPPING = (str(PROJECT / "config" / kind / "zigzag" / "tpu_like.yaml") for kind in ("hardware", "mapping"))
WORKLOAD = str(PROJECT / "tests" / "workflow" / "tiny" / "workload" / "two_layers.yaml")
SPACE = {
    "accelerator": str(PROJECT / "config" / "hardware" / "systolic" / "systolic.yaml"),
    "networks": [WORKLOAD],
    "axes": {"k": {"path": "memories.sram.r_cost", "values": [1, 2]}},
    "options": {"lpf_limit": 2},
}
ONE_CORE, SEVERAL = "map", ("schedule", "fuse")
RUNS = (ONE_CORE, *SEVERAL)
MARKED = {
    "allocate": "allocation.json",
    "attention": "attention.json",
    "depth_first": "depth_first.json",
    "tokens": "tokens.json",
    "court": "court.json",
    "advise": "advice.json",
    "vary": "wide.yaml",
}
"""Maps a verb to the file that identifies its folder."""
REMEDY = {
    "cns": "`tilewright cost`, `allocate` and `schedule`",
    "allocate": "`tilewright schedule`",
    "explore": "`tilewright compare` takes FOLDER:DESIGN",
    "front": "`tilewright check-front`",
    "report": "give the folder of the run itself",
    "explain": "give the folder of the run itself",
    "export": "give the folder of the run itself",
    "attention": "`tilewright check`",
    "depth_first": "`tilewright check`",
    "tokens": "`tilewright.load`",
    "court": "`tilewright.load`",
    "advise": "give the folder of the run itself",
    "vary": "`tilewright validate`",
    "empty": "is empty",
    "file": "is a file",
    "above": "give one of these folders",
}
"""Maps a kind of folder to the advice in the message if a run is needed."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for each verb that writes one."""
    place = tmp_path_factory.mktemp("folders")
    network = write_network(place)
    space = place / "space.yaml"
    space.write_text(yaml.safe_dump(SPACE))
    described = ["--hardware", HARDWARE, "--mapping", MAPPING, "--workload", WORKLOAD]
    run = str(place / "map")
    assert main(["map", "--preset", "zigzag", *described, "--lpf-limit", "2", "--no-store", "-o", run]) == 0
    assert main(["report", run, "-o", str(place / "report")]) == 0
    assert main(["explain", run, "-o", str(place / "explain")]) == 0
    assert main(["export", run, "--format", "simple-json", "-o", str(place / "export")]) == 0
    assert main(["explore", str(space), "-o", str(place / "explore")]) == 0
    assert main(["front", str(space), "-o", str(place / "front")]) == 0
    cut_and_cost(network, place / "schedule")
    shutil.copytree(place / "schedule", place / "cns")
    found = inputs(network, place / "schedule")
    assert main(["allocate", *found, *GA, "-o", str(place / "schedule")]) == 0
    allocation = str(place / "schedule" / "allocation.json")
    assert main(["schedule", *found, "--core-allocation", allocation, "-o", str(place / "schedule")]) == 0
    options = ["--nb-plans", "3", "--lpf-limit", "2"]
    assert main(["fuse", *given(network), *options, "-o", str(place / "fuse")]) == 0
    for name, file in MARKED.items():
        (place / name).mkdir()
        (place / name / file).write_text("{}")
    (place / "empty").mkdir()
    (place / "file").write_text("text")
    (place / "above").mkdir()
    shutil.copytree(place / "map", place / "above" / "one")
    return place


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a place for the files of the verbs that read these folders."""
    return tmp_path_factory.mktemp("written")


READERS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "report": (["-o", "OUT/report"], RUNS),
    "page": (["-o", "OUT/page.html"], (*RUNS, "above")),
    "explain": ([], RUNS),
    "advise": (["--no-search"], RUNS),
    "check": ([], RUNS),
    "export": (["-o", "OUT/mapping.yaml"], (ONE_CORE,)),
    "summarize": ([], (*RUNS, "above")),
    "pareto": ([], (*RUNS, "above")),
    "results": ([], ()),
    "check-front": ([], ("front",)),
    "audit": ([], (*RUNS, "above", "explore", "front")),
}
"""Maps a verb to its further arguments and the folders on which it works."""


@pytest.mark.parametrize("verb", READERS)
def test_every_verb_works_on_a_folder_or_says_what_it_holds(
    verb: str, folders: Path, written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb works on a folder or names the verb for it, without an internal error."""
    further, works_on = READERS[verb]
    for name in (*RUNS, *REMEDY):
        capsys.readouterr()
        code = main([verb, str(folders / name), *(word.replace("OUT", str(written / name)) for word in further)])
        said = capsys.readouterr()
        if name in works_on:
            assert code == 0, (verb, name, said.err)
            continue
        assert code == 2, (verb, name, said.err)
        assert "internal error" not in said.err
        if name in REMEDY and verb not in ("results", "check-front", "check", "audit"):
            assert REMEDY[name] in said.err, (verb, name, said.err)
        elif verb in ("results", "check-front"):
            known = ("configuration", "`tilewright front`", "name the file of the space")
            assert any(words in said.err for words in known), (verb, name, said.err)


def test_what_fuse_wrote_has_a_report(folders: Path, written: Path) -> None:
    """The report of a `fuse` run has all figures except that of the search for an allocation."""
    places = [written / name / "report" for name in ("fuse", "schedule")]
    for place in places:
        if not place.is_dir():  # another process has tried the verb
            assert main(["report", str(folders / place.parent.name), "-o", str(place)]) == 0
    names = [{path.name for path in place.iterdir()} for place in places]
    assert names[1] - names[0] == {"allocation.svg", "allocation.png"}
    assert names[0] < names[1]


def test_exports_of_several_cores_name_what_there_is(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`export` of a run on several cores names the mapping file in its folder."""
    assert main(["export", str(folders / "schedule")]) == 2
    assert "mapping.yaml as the mapping file of the run" in capsys.readouterr().err


def test_load_says_what_a_folder_holds(folders: Path) -> None:
    """`load` reads runs and tables, and names the verb for other folders."""
    for name in (*RUNS, "explore", "front"):
        assert tilewright.load(folders / name) is not None
    for name in ("cns", "export", "report", "attention", "empty"):
        with pytest.raises(tilewright.InputError) as raised:
            tilewright.load(folders / name)
        assert REMEDY[name] in str(raised.value)


NO_FUNCTIONS_OF_RESULTS = ("accuracy", "compare_chips", "completion", "conformance", "store", "warm_up")
"""Functions without arguments, or about this installation."""


def test_functions_tell_of_what_they_cannot_take(
    folders: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each public function, called with each kind of result, works or raises an error of the package."""
    monkeypatch.chdir(tmp_path)
    mapped, scheduled = tilewright.load(folders / "map"), tilewright.load(folders / "schedule")
    values = (
        mapped,
        scheduled,
        tilewright.load(folders / "explore"),
        mapped.records[0],
        mapped.records,
        mapped.summary,
    )
    values += (tilewright.parse_accelerator(HARDWARE), None, 3, b"bytes", "nowhere")
    called = 0
    for name in sorted(set(tilewright.__all__) - {*NO_FUNCTIONS_OF_RESULTS, "__version__"}):
        function: Any = getattr(tilewright, name)
        if inspect.isclass(function):
            continue
        needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
        positional = [one for one in needed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        for value in values:
            keywords = {one.name: value for one in needed if one.kind is one.KEYWORD_ONLY}
            with contextlib.suppress(tilewright.TilewrightError):
                function(*[value] * len(positional), **keywords)
            called += 1
    assert called > 300


@pytest.mark.parametrize("name", ["explain", "advise", "report", "check", "compare"])
def test_results_in_place_of_a_folder_are_told(name: str, folders: Path) -> None:
    """The message about a result in place of a folder names the function and the folder to give."""
    mapped = tilewright.load(folders / "map")
    arguments = [mapped, mapped] if name == "compare" else [mapped]
    with pytest.raises(tilewright.InputError) as raised:
        getattr(tilewright, name)(*arguments)
    told = f"tilewright.{name} takes a path, not MappedWorkload; give the folder (argument `output`) of this result"
    assert told in str(raised.value)
