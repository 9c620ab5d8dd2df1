"""Messages on the command line name flags; messages of Python functions name keywords."""

import inspect
import re
from pathlib import Path
from typing import Any

import click
import pytest
import tilewright
from tilewright.base.errors import InputError, Label, OptionPath, Problem, Unused
from tilewright.base.parameters import Parameter
from tilewright.cli.flags import Flags, error_in_flags, flags_of, in_flags, notice_in_flags
from tilewright.cli.main import VERBS, _dispatch, cli, main

from tests.strangers.verbs import CASES, write_files

INPUTS = ("hardware", "workload", "mapping")
FLAGS = Flags(
    {
        "latency_slack": "--latency-slack",
        "front": "--front",
        "mode": "--mode",
        "bits": "--bits",
        "dims": "--dim",
        "pipeline": "--pipeline",
    },
    {"front": "--no-front"},
)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (Problem("wrong", path="latency_slack"), "--latency-slack: wrong"),
        (Problem("wrong", path="front"), "--no-front: wrong"),
        (Problem("so `front` must be true", path="mode"), "--mode: so --front must be true"),
        (Problem("needs `mode: lbl`", path="front"), "--no-front: needs `--mode lbl`"),
        (Problem("latency_slack and front", path="x"), "x: --latency-slack and front"),
        (
            Problem("no", path="mode", allowed="a, or latency_slack: 2%"),
            "--mode: no (allowed: a, or --latency-slack 2%)",
        ),
        (Problem("wrong", path="bits.Conv.weights"), "--bits Conv.weights: wrong"),
        (Problem("wrong", path="bits[0]"), "--bits[0]: wrong"),
        (Problem("no latency_slack", path="pipeline[0].stage"), "--pipeline[0].stage: no latency_slack"),
        (Problem("wrong", path="mode", value="latency_slack"), "--mode: wrong, got latency_slack"),
        (Problem("layer 'latency_slack' and 'a latency_slack'"), "layer 'latency_slack' and 'a latency_slack'"),
        (Problem("see a.latency_slack, latency_slack/b"), "see a.latency_slack, latency_slack/b"),
        (Problem("latency_slack", path=Label("mode")), "mode: latency_slack"),
        (Problem("latency_slack, `mode`", "a.yaml", 3, "mode"), "a.yaml:3 mode: latency_slack, `mode`"),
        (Problem("the option mode is", "a.yaml", 3, "mode"), "a.yaml:3 mode: the option --mode is"),
        (Problem("wrong", "a.onnx", path=OptionPath("dims.x")), "a.onnx --dim x: wrong"),
        (Problem("?", "a.onnx", path="n", allowed="dims: a:0: SIZE"), 'a.onnx n: ? (allowed: --dim "a:0=SIZE")'),
    ],
    ids=str,
)
def test_what_names_a_parameter(problem: Problem, told: str) -> None:
    """Paths and texts have flags in place of parameters. Quoted names, names of layers and keys of files stay."""
    assert str(in_flags(problem, FLAGS)) == told


def test_notices_and_errors() -> None:
    """A notice of unused input and an error have flags; a plain notice only after the word option."""
    problem = Problem("has no effect without `front`", path="latency_slack")
    assert notice_in_flags(Unused(problem), FLAGS) == "--latency-slack: has no effect without --front"
    assert (
        notice_in_flags("the option front is off; latency_slack", FLAGS) == "the option --front is off; latency_slack"
    )
    error = InputError([problem])
    assert str(error_in_flags(error, FLAGS)) == "--latency-slack: has no effect without --front"
    assert error_in_flags(error, Flags()) is error


def test_who_is_told_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line names the flag. A Python function and a job of the pipeline name the parameter."""
    write_files(tmp_path)
    given = {
        kind: str(tmp_path / file)
        for kind, file in zip(INPUTS, ("narrow.yaml", "layers.yaml", "free.yaml"), strict=True)
    }
    words = ["map", *(word for kind, file in given.items() for word in (f"--{kind}", file)), "--latency-slack", "2"]
    told = "latency_slack: must be a percentage"
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"error: {told.replace('latency_slack', '--latency-slack')}")
    assert _dispatch(words, is_job=True) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")
    with pytest.raises(InputError, match=f"^{told}"):
        tilewright.map(**given, latency_slack="2")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--deadline-ms 1 --latency-slack 2%", "--deadline-ms: --latency-slack and --deadline-ms each choose a point"),
        ("--energy-slack 2% --no-front", "--no-front: chooses a point of the Pareto front, so --front must be true"),
        ("--deadline-ms 1 --preset zigzag", "--deadline-ms: chooses a point of the Pareto front, which only `--temp"),
        ("--allocation free --temporal-mapping-type even", "--temporal-mapping-type: with `--allocation free`, each"),
        ("--bits weights=0", "--bits weights: wrong number of bits, got 0"),
    ],
)
def test_contradicting_options(options: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options that contradict each other are told with all their flags."""
    write_files(tmp_path)
    case = CASES[0].arguments(tmp_path)
    words = case[: case.index("--preset")]
    assert main([*words, "--no-store", *options.split()]) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


@pytest.mark.parametrize("verb", VERBS)
def test_flags_belong_to_keywords(verb: str) -> None:
    """Each option has the name of a keyword of the Python function, so that one name serves both."""
    command, function = _verb(verb), getattr(tilewright, verb.replace("-", "_"))
    if not isinstance(command, click.Group):
        known = {"as_json", "verbose", "no_store", "plan", *inspect.signature(function).parameters}
        assert {one.name for one in command.params} - known == set()


# all verbs and options ------------------------------------------------------------------------------------------------


def _verb(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def _wrong_text(option: click.Option) -> str:
    """Text that the parameter of an option refuses; '' if any text is allowed, or if click itself checks the text."""
    parameter: Parameter | None = getattr(option, "parameter", None)
    if parameter is None or parameter.is_switch:
        return ""
    for text, value in (("-1", -1), ("-1.5", -1.5), ("?", "?"), ('{"?": [-1.5]}', {"?": [-1.5]})):
        try:
            parameter.converted(value)
        except InputError:
            return text
    return ""


def _required(command: click.Command, folder: Path) -> list[str]:
    """Arguments that the command requires, with paths that do not exist."""
    found = []
    for one in command.params:
        if one.required:
            choices = getattr(one.type, "choices", ())
            flag = [one.opts[0]] if isinstance(one, click.Option) else []
            found += [*flag, str(choices[0]) if choices else str(folder / "none")]
    return found


def _lines(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    code = main(arguments)
    return code, [line for line in capsys.readouterr().err.splitlines() if re.match("error:|note:|warning:", line)]


def _bare(lines: list[str], flags: Flags) -> list[str]:
    """Lines that have the bare name of an option: as the path, or as a name with an underscore."""
    heads = "|".join(map(re.escape, flags.of))
    long = "|".join(re.escape(name) for name in flags.of if "_" in name)
    unquoted = [(line, re.sub(r"'[^']*'", "", line)) for line in lines]
    return [
        line
        for line, text in unquoted
        if re.match(rf"(error|note|warning): ({heads})[:.\[]", text)
        or (long and re.search(rf"(?<![\w./-])({long})(?![\w./-])", text))
    ]


def _wrong_texts(command: click.Command) -> dict[str, str]:
    """Wrong text of each option whose parameter has a limit, by flag."""
    options = (one for one in command.params if isinstance(one, click.Option))
    return {one.opts[-1]: text for one in options if (text := _wrong_text(one))}


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_values_name_flags(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No line has the bare name of a parameter if all options with limits have wrong values."""
    command = _verb(verb)
    write_files(tmp_path)
    case = next((case for case in CASES if case.verb == verb), None)
    given = case.arguments(tmp_path)[1:] if case else _required(command, tmp_path)
    wrong = _wrong_texts(command)
    code, lines = _lines([verb, *given, *(f"{flag}={text}" for flag, text in wrong.items())], capsys)
    assert code == 2 or not wrong
    assert _bare(lines, flags_of(command)) == []


@pytest.mark.parametrize("case", {case.verb: case for case in CASES}.values(), ids=lambda case: case.verb)
def test_a_wrong_value_names_its_flag(case: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The only error about a wrong value begins with the flag of the option."""
    write_files(tmp_path)
    for flag, text in _wrong_texts(_verb(case.verb)).items():
        code, lines = _lines([*case.arguments(tmp_path), f"{flag}={text}"], capsys)
        errors = [line for line in lines if line.startswith("error:")]
        assert (code, len(errors)) == (2, 1), (flag, lines)
        assert errors[0].startswith(f"error: {flag}"), errors


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.verb}-{case.files[0]}")
def test_single_options_name_flags(case: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An option with a nonsense value alone is told with its flag, if it is refused; the exit code is 2."""
    write_files(tmp_path)
    command = _verb(case.verb)
    flags = flags_of(command)
    for one in command.params:
        if (
            not isinstance(one, click.Option)
            or one.is_flag
            or one.name in ("output", "store", "written", "jobs", "pipeline")
        ):
            continue
        code = main([*case.arguments(tmp_path), f"{one.opts[-1]}=?=-1", "--strict"])
        said = capsys.readouterr().err
        assert code in (0, 2), said
        assert _bare(said.splitlines(), flags) == []
        if code == 2 and not isinstance(one.type, click.Path):
            assert one.opts[-1] in said or one.opts[0] in said
