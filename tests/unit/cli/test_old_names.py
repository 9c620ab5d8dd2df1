"""Former names of verbs and options: they work like the current ones and are listed nowhere."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.cli.main import main
from tilewright.cli.old_names import OLD_OPTIONS, OldOption, now_called, with_old_keywords

from tests.strangers.verbs import write_files
from tests.unit.cli.multi_core import GA, cut_and_cost, inputs, write_network
from tests.unit.evidence.chips.cases import write_case

pytestmark = pytest.mark.usefixtures("unpainted")

DESCRIBED = "--hardware narrow.yaml --workload net.onnx --mapping free.yaml --lpf-limit 2"
LANGUAGE_MODEL = "--workload step.yaml --mapping vector_mapping.yaml --lpf-limit 1 --key-block 8 --no-store"
PROFILE = "--format llmservingsim-1.1 --max-tokens 1 --max-requests 1 --max-context 16 -o out --hardware-name npu"
CALLS = {
    "map": f"map {DESCRIBED} --no-store --jobs 2 --json",
    "cost": "cost {system} --core left --cns run --lpf-limit 2 --no-store --jobs 2 --json",
    "allocate": f"allocate {{inputs}} {' '.join(GA)} --jobs=2 --json",
    "tokens": f"tokens --hardware clocked.yaml {LANGUAGE_MODEL} --contexts 8 --no-prompts --jobs 2 --json",
    "serving": f"serving --hardware clocked.yaml {LANGUAGE_MODEL} {PROFILE} --served-model-name tiny/llama --jobs 2",
    "compare-chips": "compare-chips cases --jobs 2 --json",
    "schedule": "schedule {inputs} --core-allocation run/allocation.json --json",
    "parse": "parse hardware duo.yaml --core-folder out",
    "depth-first": f"depth-first {DESCRIBED} --tile-x 2 --tile-y 2 --overlap-mode fully-cached --json",
    "report": "report single -o out --loop-nest first --only figures",
    "export": "export single --format loop-nest",
    "accuracy": "accuracy timeloop-points --package-samples --json",
}
"""Maps a verb with a formerly named option to a call of it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make descriptions, a run on one core, and an unscheduled run on several cores."""
    place = tmp_path_factory.mktemp("old")
    write_files(place)
    core = yaml.safe_load((place / "vector.yaml").read_text()) | {"clock_frequency": "700 MHz"}
    (place / "clocked.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    write_case(place / "cases" / "one")
    network = write_network(place)
    cut_and_cost(network, place / "run")
    assert main(["allocate", *inputs(network, place / "run"), *GA, "-o", str(place / "run")]) == 0
    layers = ["--hardware", "narrow.yaml", "--workload", "layers.yaml", "--mapping", "free.yaml"]
    described = [str(place / word) if word.endswith(".yaml") else word for word in layers]
    assert main(["map", *described, "--no-store", "-o", str(place / "single")]) == 0
    return place


def words_of(call: str) -> list[str]:
    """Return the words of a call, with placeholders replaced."""
    given = inputs(Path("net.onnx"), Path("run"))
    return [
        part
        for word in call.split()
        for part in {"{inputs}": given, "{system}": given[: given.index("--cns")]}.get(word, [word])
    ]


@pytest.mark.parametrize("option", OLD_OPTIONS, ids=lambda one: f"{one.verb} {one.old or one.old_keyword}")
def test_an_old_option_does_what_the_new_one_does(
    option: OldOption, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old option works with a line on stderr, an old keyword with a warning, and neither is listed."""
    monkeypatch.chdir(folder)
    if option.old:
        words = words_of(CALLS[option.verb])
        old = [option.old + word[len(option.new) :] if word.split("=")[0] == option.new else word for word in words]
        assert old != words
        assert main(words) == 0
        said, files = capsys.readouterr(), contents(folder / "out")
        assert main(old) == 0
        also = capsys.readouterr()
        assert unread(also.out) == unread(said.out)
        assert contents(folder / "out") == files
        assert said.err in also.err
        assert also.err.splitlines().count(now_called(option.old, option.new)) == 1
        assert main([*words[: 2 if option.verb == "parse" else 1], "--help"]) == 0
        assert f"{option.old} " not in (listed := capsys.readouterr().out)
        assert option.new in listed
    if option.is_keyword:
        assert_keywords_agree(option)


def assert_keywords_agree(option: OldOption) -> None:
    """Assert that both keywords give the function the same value, and that its signature has only the current one."""
    taken = with_old_keywords(lambda **given: given, option.function)
    with pytest.warns(DeprecationWarning, match=f"`{option.old_keyword}` is now called `{option.new_keyword}`"):
        assert taken(**{option.old_keyword: 2}) == taken(**{option.new_keyword: 2}) == {option.new_keyword: 2}
    with pytest.raises(TypeError, match=option.old_keyword):
        taken(**{option.old_keyword: 2, option.new_keyword: 2})
    reader = option.verb == "parse"
    known = inspect.signature(read_hardware() if reader else getattr(tilewright, option.function)).parameters
    assert option.new_keyword in known
    assert option.old_keyword not in known


def read_hardware() -> Callable[..., Any]:
    """Return the function behind `tilewright.parse("hardware", ...)`."""
    from tilewright.cli.parse import READERS

    return READERS["hardware"]


def contents(place: Path) -> dict[str, bytes]:
    """Return the contents of the files in a folder that have the same bytes each time."""
    return {path.name: path.read_bytes() for path in place.rglob("*") if path.suffix in (".json", ".svg", ".csv")}


def unread(text: str) -> str:
    """Return a JSON value without times, and other texts unchanged."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps({key: one for key, one in value.items() if key != "elapsed_s"} if type(value) is dict else value)


def test_old_keywords_reach_the_functions(folder: Path) -> None:
    """Functions of `tilewright` accept old keywords with a warning."""
    with pytest.warns(DeprecationWarning, match="`cores` is now called `core_folder`"):
        tilewright.parse("hardware", folder / "duo.yaml", cores=folder / "cores_too")
    assert {path.name for path in (folder / "cores_too").iterdir()} >= {"left.json", "right.json"}


def test_what_follows_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    """A word after two dashes is not taken for an old option."""
    assert main(["report", "--", "--layer"]) == 2
    assert "is now called" not in capsys.readouterr().err
