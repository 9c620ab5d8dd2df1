"""Users' stages: found by dotted path, identified by their code, and reported by file and line if they fail."""

import os
import py_compile
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.pipeline.stages import Pipeline
from tilewright.pipeline.stages.user_stages import digest_of_class, identity_of, is_dotted_path, load_class, local_files
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store

from tests.unit.pipeline.stages.stage_cases import OPTIONS, PROJECT, run

HEAD = """\
from dataclasses import dataclass
from typing import Any
from tilewright.pipeline.stages import Evaluations, Reduction, Rest, Stage, TemporalMapper, OrderBatch
"""
BOUND = "config.stages.latency_bound.MinimalEnergyUnderLatency"
STATIONARY = "config.stages.stationary.StationaryOrders"
TINY = PROJECT / "tests" / "workflow" / "tiny"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a place for stages."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str, name: str = "mine/own.py") -> Path:
    """Write a file with stages, below a head of three lines."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + text)
    return path


def stage(body: str, base: str = "Stage", fields: str = "") -> str:
    """The text of a stage `Own` with a body of `run`."""
    return f"""
@dataclass(frozen=True)
class Own({base}):
    \"\"\"A stage.\"\"\"
{fields}
    def run(self, item, rest):
        {body}
"""


def said(edit: dict[str, Any] | None = None) -> str:
    """The error message of a pipeline with the user's stage `Own`, or with the given edit, when it is built and run."""
    pipeline = [edit or {"insert": "mine.own.Own", "after": "Workload"}]
    with pytest.raises(InputError) as caught:
        run(pipeline)
    return str(caught.value)


# the worked examples --------------------------------------------------------------------------------------------------


def test_worked_reduction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worked reduction keeps the mapping with the least energy within a limit of cycles."""
    monkeypatch.chdir(PROJECT)
    fastest, cheapest = run(None, OPTIONS), run(None, SearchOptions(objective="energy", lpf_limit=4))

    def under(cycles: float) -> list[dict[str, Any]]:
        parameters = {"latency_bound_cycles": cycles}
        pipeline = [{"replace": "MinimalLatency", "stage": BOUND, "parameters": parameters}]
        return list(run(pipeline, OPTIONS).records)

    assert [r.energy_pj for r in under(10**9)] == [r.energy_pj for r in cheapest.records]
    bound = max(record.latency_cycles for record in fastest.records)
    for record, fast, cheap in zip(under(bound), fastest.records, cheapest.records, strict=True):
        assert record.latency_cycles <= bound
        assert cheap.energy_pj <= record.energy_pj <= fast.energy_pj
        assert record.objective == "MinimalEnergyUnderLatency"
    with pytest.raises(Exception, match="every mapping that fits takes more than 3 cycles"):
        under(3)


def test_worked_mapper(monkeypatch: pytest.MonkeyPatch) -> None:
    """The innermost loops in each order of the worked mapper are those that the operand does not depend on."""
    monkeypatch.chdir(PROJECT)
    mapped = run([{"replace": "Loma", "stage": STATIONARY, "parameters": {"operand": "W"}}])
    for record, depends_on in zip(mapped.records, ({"K", "C", "FX", "FY"}, {"C", "K"}), strict=True):
        inside = [dimension in depends_on for dimension, _ in record.loop_order]
        assert inside == sorted(inside)
        assert record.evaluations > 1


def test_parameters_of_a_users_stage_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and types of parameters are checked against the user's class."""
    monkeypatch.chdir(PROJECT)
    for parameters, part in (
        ({}, "pipeline[0].parameters.latency_bound_cycles: config.stages.latency_bound.Minimal"),
        ({"latency_bound": 3}, "did you mean 'latency_bound_cycles'?"),
        ({"latency_bound_cycles": "3"}, "wrong kind of value, got '3' (allowed: a number)"),
    ):
        with pytest.raises(InputError) as caught:
            Pipeline.build([{"replace": "MinimalLatency", "stage": BOUND, "parameters": parameters}])
        assert part in str(caught.value)


def test_stage_of_the_documentation_that_writes(folder: Path) -> None:
    """The third example of docs/stages/own-stage.md hands on its items and writes its file."""
    page = (PROJECT / "docs" / "stages" / "own-stage.md").read_text()
    (block,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class SlowestLayers" in text]
    (folder / "mine" / "own.py").write_text(block)
    pipeline = [{"insert": "mine.own.SlowestLayers", "before": "Workload", "parameters": {"number": 2}}]
    mapped = run(pipeline, exports=folder / "exports")
    assert mapped == run()
    slow, fast = sorted(mapped.records, key=lambda record: record.latency_cycles, reverse=True)
    names = [*slow.layer_names, *fast.layer_names]
    lines = (folder / "exports" / "slowest.txt").read_text().splitlines()
    assert [line.split(": ")[0] for line in lines] == names[:2]


# finding and loading --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dotted", "expected"),
    [("a.b.C", True), ("a.C", True), ("Loma", False), ("a..C", False), ("a b.C", False), ("a.3", False), ("", False)],
)
def test_what_a_dotted_path_is(dotted: str, expected: bool) -> None:
    """A dotted path is a name of identifiers with dots between them."""
    assert is_dotted_path(dotted) == expected


@pytest.mark.parametrize(
    ("dotted", "part"),
    [
        ("mine.owm.Own", "mine/owm.py the file of the stage mine.owm.Own does not exist (did you mean 'own.py'?)"),
        ("nowhere.own.Own", "nowhere/own.py the file of the stage nowhere.own.Own does not exist"),
        ("mine.own.Onw", "mine/own.py has no class Onw (did you mean 'Own'?)"),
        ("mine.own.number", "mine/own.py number is not a stage"),
        ("mine.own.Bare", "mine/own.py Bare has parameters, so it must be decorated"),
    ],
)
def test_what_is_not_there_is_told(folder: Path, dotted: str, part: str) -> None:
    """A missing file, a missing class and a wrong kind of class are reported, with the nearest name."""
    write(folder, stage("yield from rest(item)") + "\nnumber = 3\nclass Bare(Stage):\n    x: int = 3\n")
    with pytest.raises(InputError) as caught:
        load_class(dotted)
    assert part in str(caught.value)


def test_loading_leaves_no_traces(folder: Path) -> None:
    """Loading leaves sys.path unchanged and writes no bytecode; imports of neighbouring files work."""
    write(folder, "number = 1\n", "mine/helper.py")
    write(folder, "number = 2\n", "mine/beside.py")
    text = "from mine.helper import number\nimport beside\n" + stage("yield from rest(item)")
    write(folder, text + "\ntotal = number + beside.number\n")
    before = sys.path[:]
    kind = load_class("mine.own.Own")
    assert sys.path == before
    assert sorted(path.name for path in (folder / "mine").iterdir()) == ["beside.py", "helper.py", "own.py"]
    assert sys.modules[kind.__module__].total == 3
    assert kind.name() == "mine.own.Own"


def test_bytecode_of_other_tools_is_not_run(folder: Path) -> None:
    """Bytecode of other tools beside the user's files is not run, even if its age and size match."""
    write(folder, "number = 1\n", "mine/helper.py")
    write(folder, "from mine.helper import number\nown = 1\n" + stage("yield from rest(item)"))
    for name in ("helper", "own"):
        path = folder / "mine" / f"{name}.py"
        text, age = path.read_text("utf-8"), path.stat()
        path.write_text(text.replace(" = 1", " = 2"), "utf-8")
        os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
        py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
        path.write_text(text, "utf-8")
        os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
    module = sys.modules[load_class("mine.own.Own").__module__]
    assert (module.own, module.number) == (1, 1)


def test_an_edited_file_is_loaded_anew(folder: Path) -> None:
    """An edited file is loaded again, also right after the edit, and if only a file that it imports changed."""
    write(folder, "number = 1\n", "mine/helper.py")
    write(folder, "from mine.helper import number\n" + stage("yield from rest(item)"))
    first = load_class("mine.own.Own")
    assert load_class("mine.own.Own") is first
    write(folder, "number = 2\n", "mine/helper.py")
    second = load_class("mine.own.Own")
    assert second is not first
    assert sys.modules[second.__module__].number == 2


def test_two_folders_with_the_same_names(folder: Path) -> None:
    """Classes with the same dotted path in two folders are loaded from the working folder."""
    for name, number in (("a", 1), ("b", 2)):
        write(folder / name, f"number = {number}\n", "mine/helper.py")
        write(folder / name, "from mine.helper import number\n" + stage("yield from rest(item)"))
    found = []
    for name in ("a", "b", "a"):
        module = sys.modules[load_class("mine.own.Own", folder / name).__module__]
        found.append(module.number)
    assert found[:2] == [1, 2]


# digest ---------------------------------------------------------------------------------------------------------------


def test_digest_sees_the_file_and_what_it_imports(folder: Path) -> None:
    """The digest changes with any byte of the file, and of local files it imports directly or indirectly."""
    for name in (
        "mine/helper.py",
        "mine/deeper.py",
        "mine/package/__init__.py",
        "mine/package/part.py",
        "mine/other.py",
    ):
        write(folder, "", name)
    (folder / "mine/helper.py").write_text("def f():\n    from .deeper import x\n")
    imports = "import numpy\nfrom mine import helper\nfrom .package import part\n"
    path = write(folder, imports + stage("yield from rest(item)"))
    files = [file.relative_to(folder).as_posix() for file in local_files(path, folder)]
    assert files == [
        "mine/deeper.py",
        "mine/helper.py",
        "mine/own.py",
        "mine/package/__init__.py",
        "mine/package/part.py",
    ]
    before = digest_of_class(load_class("mine.own.Own"))
    (folder / "mine/other.py").write_text("x = 1\n")
    assert digest_of_class(load_class("mine.own.Own")) == before
    seen = {before}
    for name in files:
        (folder / name).write_text((folder / name).read_text() + "# more\n")
        seen.add(digest_of_class(load_class("mine.own.Own")))
    assert len(seen) == len(files) + 1


def test_code_is_part_of_the_identity(folder: Path) -> None:
    """The identity of a user's stage, and the store's key, change with its code."""
    write(folder, stage("yield from rest(item)"))
    pipeline = [{"insert": "mine.own.Own", "after": "Workload"}]
    store = Store(folder / "store")
    stages = Pipeline.build(pipeline, OPTIONS).stages
    first = next(identity_of(one) for one in stages if one.name() == "mine.own.Own")
    assert first["code"] == digest_of_class(load_class("mine.own.Own"))
    plain = run(pipeline, store=store)
    entries = len(store.entries())
    again: list[dict[str, Any]] = []
    assert run(pipeline, store=store, on_record=again.append) == plain == run()
    assert (again, len(store.entries())) == ([], entries)
    write(folder, stage("yield from rest(item)  # the same"))
    run(pipeline, store=store)
    assert len(store.entries()) == 2 * entries


# errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("\nx = (\n", "mine/own.py:5 pipeline[0]: SyntaxError"),
        ("\n\n1 / 0\n", "mine/own.py:6 pipeline[0]: ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name\n", "mine/own.py:4 pipeline[0]: ModuleNotFoundError: No module named"),
        ("from mine.helper import x\n", "mine/helper.py:5 pipeline[0]: NameError: name 'undefined' is not defined"),
    ],
)
def test_errors_while_importing(folder: Path, text: str, part: str) -> None:
    """An error while the file is imported is reported with its line, also in a file that it imports."""
    write(folder, "\nx = undefined\n", "mine/helper.py")
    write(folder, text)
    assert part in said()


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("yield 1 / 0", "mine/own.py:11 mine.own.Own: ZeroDivisionError: division by zero"),
        ("raise KeyError('x')", "mine/own.py:11 mine.own.Own: KeyError: 'x'"),
        ("yield 3", "mine/own.py mine.own.Own: WrongTypeError: run yielded int instead of Evaluations"),
        ("return None", "mine/own.py mine.own.Own: WrongTypeError: run returned None; it has to yield results"),
        ("yield from rest(3)", "mine/own.py:11 mine.own.Own: WrongTypeError: handed on int instead of LayerProblem"),
        ("yield from rest()", "mine/own.py:11 mine.own.Own: TypeError: "),
        ("yield from (r.nothing for r in rest(item))", "'Evaluations' object has no attribute 'nothing'"),
    ],
)
def test_errors_while_running(folder: Path, body: str, part: str) -> None:
    """An error in `run` is reported with file, line and stage."""
    write(folder, stage(body, fields="    returns = Evaluations\n"))
    text = said()
    assert part in text
    assert text.count("\n") == 0


def test_errors_in_the_constructor(folder: Path) -> None:
    """Any exception of a user's check of parameters is reported with its line."""
    fields = "    x: int = 3\n\n    def __post_init__(self):\n        raise ValueError('x must be even')\n"
    write(folder, stage("yield from rest(item)", fields=fields))
    assert "mine/own.py:11 pipeline[0].parameters: ValueError: x must be even" in said()


def test_wrong_batches_are_told_where_they_are_made(folder: Path) -> None:
    """A batch that the cost model cannot use is reported at the line that handed it on."""
    fields = "    takes = TemporalMapper.takes\n    gives = OrderBatch\n"
    body = "import numpy as np\n        batch = OrderBatch(item, item.spatial.temporal_sizes, np.zeros((1, 200), int))"
    write(folder, stage(f"{body}\n        yield from rest(batch)", fields=fields))
    edit = {"replace": "Loma", "stage": "mine.own.Own"}
    with pytest.raises(Exception, match="200 temporal loops; at most 96"):
        run([edit])
    body = "batch = OrderBatch.of_orders(item, [])\n        object.__setattr__(batch, 'orders', None)"
    write(folder, stage(f"{body}\n        yield from rest(batch)", fields=fields))
    assert "mine/own.py:14 mine.own.Own: " in said(edit)
    assert "called from here" in said(edit)


def test_our_own_faults_are_not_the_users(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error below a user's stage that hands on its item unchanged is not attributed to that stage."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    write(folder, stage("yield from rest(item)"))
    monkeypatch.setattr("tilewright.pipeline.stages.temporal.cost_orders", fail)
    with pytest.raises(ZeroDivisionError, match="ours"):
        run([{"insert": "mine.own.Own", "after": "Workload"}])


def test_command_line_tells_errors_in_their_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command exits with 2 and one line with file and line number; `-v` adds a traceback."""
    write(folder, stage("yield 1 / 0"))
    given = ["--hardware", str(TINY / "hardware/wide.yaml"), "--workload", str(TINY / "workload/two_layers.yaml")]
    given += ["--mapping", str(TINY / "mapping/free.yaml"), "--no-store", "--lpf-limit", "3"]
    pipeline = '[{"insert": "mine.own.Own", "after": "Workload"}]'
    assert main(["map", *given, "--pipeline", pipeline]) == 2
    said = capsys.readouterr().err
    assert said == "error: mine/own.py:10 mine.own.Own: ZeroDivisionError: division by zero\n"
    assert main(["map", *given, "--pipeline", pipeline, "-v"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_command_line_checks_pipelines_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command reports a wrong pipeline before it reads files, with lines if it is in a file; exports need `-o`."""
    given = ["map", "--hardware", "none", "--workload", "none", "--mapping", "none", "--pipeline"]
    assert main([*given, '[{"set": "Loma", "parameters": {"lpf_limti": 3}}]']) == 2
    assert "pipeline[0].parameters.lpf_limti" in capsys.readouterr().err
    (folder / "list.yaml").write_text("- drop: Sum\n- drop: Summ\n")
    (folder / "table.yaml").write_text("pipeline:\n- drop: Summ\n")
    assert main([*given, "list.yaml"]) == main([*given, "table.yaml"]) == 2
    said = capsys.readouterr().err
    assert "list.yaml:2 [1].drop: the pipeline has no such stage, got 'Summ'" in said
    assert "table.yaml:2 pipeline[0].drop: the pipeline has no such stage, got 'Summ' (did you mean" in said
    assert main([*given, "nowhere.yaml"]) == 2
    assert "no such pipeline file" in capsys.readouterr().err
    assert main([*given, '[{"insert": "Dump", "after": "Sum"}]']) == 2
    assert "-o: is needed, because a stage of the pipeline writes files" in capsys.readouterr().err
