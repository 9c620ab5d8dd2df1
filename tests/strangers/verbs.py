"""Small cases of verbs that read users' files: files, arguments, and the messages and results of a call."""

import contextlib
import io
import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tilewright.cli.main import main

from tests.strangers.mistakes import Mistake, misspelt, mistake
from tests.strangers.onnx_mistakes import onnx_mistake
from tests.strangers.outcomes import CHANGED, CRASHED, FREE, REFUSED, SILENT, TOLD, Outcome
from tests.three_layers import write_network

TESTS = Path(__file__).resolve().parents[1]
CONFIG = TESTS.parent / "config"
TINY, TINY_MULTI = TESTS / "workflow" / "tiny", TESTS / "workflow" / "tiny_multi"
_FLAGS = frozenset({"--json", "--no-store", "--no-prompts"})
"""Options without a value."""
NOT_FOUND = frozenset({"unused", "notices", "elapsed_s"})
"""Keys of results that repeat messages or give times."""
MODEL = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 1,
    "vocab_size": 8,
}
POINTS = (
    {"layer": "second", "spatial_mapping": {"D1": {"K": 2}}, "loop_order": [["K", 4], ["C", 16]]},
    {"layer": "second", "spatial_mapping": {"D1": {"K": 2}}, "loop_order": [["C", 16], ["K", 4]]},
)
SPACE = {
    "accelerator": "narrow.yaml",
    "networks": ["layers.yaml"],
    "mapping": "free.yaml",
    "options": {"lpf_limit": 2},
    "axes": {"room": {"path": "memories.memory.size", "values": [8388608, 16777216]}},
    "laws": {"memories.memory.r_cost": "room / 167772"},
    "constraints": ["latency_cycles > 0"],
}


@dataclass(frozen=True)
class Case:
    """One call of a verb in a folder."""

    verb: str
    options: str
    """Options in the form of a shell; names of files are those in the folder."""
    files: tuple[str, ...]
    """Files in which a user can make mistakes."""

    def arguments(self, folder: Path) -> list[str]:
        """The command line of the call."""
        known = {path.name for path in folder.iterdir()}
        return [self.verb, *(str(folder / word) if word in known else word for word in self.options.split())]


CASES = (
    Case(
        "map",
        "--hardware narrow.yaml --workload layers.yaml --mapping free.yaml --preset zigzag --lpf-limit 2 --no-store"
        " --json",
        ("narrow.yaml", "layers.yaml", "free.yaml"),
    ),
    Case(
        "map",
        "--hardware narrow.yaml --workload net.onnx --mapping free.yaml --preset zigzag --lpf-limit 2 --no-store"
        " --model corrected --json",
        ("net.onnx", "free.yaml", "narrow.yaml"),
    ),
    Case(
        "map",
        "--hardware narrow.yaml --workload net.onnx --mapping free.yaml --preset zigzag --lpf-limit 2 --no-store"
        " --json",
        ("net.onnx",),
    ),
    Case(
        "cns",
        "--hardware duo.yaml --workload net.onnx --mapping duo_mapping.yaml --json",
        ("duo.yaml", "net.onnx", "duo_mapping.yaml", "cores/left.yaml", "cores/offchip.yaml"),
    ),
    Case(
        "fuse",
        "--hardware duo.yaml --workload net.onnx --mapping duo_mapping.yaml --nb-plans 2 --jobs 1 --lpf-limit 2"
        " --fusion-time-budget-s none --json",
        ("duo.yaml", "net.onnx", "duo_mapping.yaml", "cores/left.yaml", "cores/right.yaml", "cores/offchip.yaml"),
    ),
    Case(
        "tokens",
        "--hardware vector.yaml --workload step.yaml --mapping vector_mapping.yaml --contexts 8 --key-block 8"
        " --no-prompts --lpf-limit 1 --no-store --json",
        ("vector.yaml", "step.yaml", "model.json", "vector_mapping.yaml"),
    ),
    Case(
        "tokens",
        "--hardware duo.yaml --workload step.yaml --mapping duo_mapping.yaml --contexts 8 --key-block 8 --no-prompts"
        " --parallel tensor --lpf-limit 1 --no-store --json",
        ("duo.yaml", "duo_mapping.yaml", "cores/left.yaml"),
    ),
    Case("explore", "space.yaml --no-store --json", ("space.yaml", "narrow.yaml", "layers.yaml", "free.yaml")),
    Case(
        "evaluate",
        "--hardware narrow.yaml --workload layers.yaml --points points.jsonl --json",
        ("points.jsonl", "narrow.yaml", "layers.yaml"),
    ),
    Case(
        "depth-first",
        "--hardware narrow.yaml --workload net.onnx --mapping free.yaml --tile-x 2 --tile-y 2"
        " --overlap-mode fully-cached --lpf-limit 2 --json",
        ("narrow.yaml", "net.onnx", "free.yaml"),
    ),
    Case(
        "attention",
        "--hardware vector.yaml --workload step.yaml --mapping vector_mapping.yaml --tile-queries 1 --tile-keys 8"
        " --lpf-limit 2 --json",
        ("vector.yaml", "step.yaml", "vector_mapping.yaml"),
    ),
)


def write_files(folder: Path) -> None:
    """Write the files of all cases."""
    shutil.copyfile(TINY / "hardware" / "narrow.yaml", folder / "narrow.yaml")
    shutil.copyfile(TINY / "workload" / "two_layers.yaml", folder / "layers.yaml")
    shutil.copyfile(TINY / "mapping" / "free.yaml", folder / "free.yaml")
    shutil.copytree(TINY_MULTI / "hardware", folder, dirs_exist_ok=True)
    shutil.copyfile(TINY_MULTI / "mapping" / "duo.yaml", folder / "duo_mapping.yaml")
    shutil.copyfile(CONFIG / "hardware" / "zigzag" / "tpu_like_vector.yaml", folder / "vector.yaml")
    shutil.copyfile(CONFIG / "mapping" / "zigzag" / "tpu_like_vector.yaml", folder / "vector_mapping.yaml")
    write_network(folder / "net.onnx")
    (folder / "model.json").write_text(json.dumps(MODEL))
    (folder / "points.jsonl").write_text("".join(f"{json.dumps(point)}\n" for point in POINTS))
    step = {"language_model": "model.json", "phase": "decode", "context": 16}
    (folder / "step.yaml").write_text(yaml.safe_dump(step, sort_keys=False))
    (folder / "space.yaml").write_text(yaml.safe_dump(SPACE, sort_keys=False))


@dataclass(frozen=True)
class Said:
    """The outcome of a call."""

    code: int
    found: str
    """Numbers of the result, without the name of the folder."""
    told: tuple[str, ...]
    """Lines on standard error."""


def called(case: Case, folder: Path, more: tuple[str, ...] = (), given: Sequence[str] = ()) -> Said:
    """Outcome of a call in this process, with `more` options, or with the command line `given`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*(given or case.arguments(folder)), *more])
    lines = [line.replace(str(folder), "") for line in err.getvalue().splitlines()]
    told = tuple(line for line in lines if line.startswith(("note:", "error:", "internal error:", "Error:")))
    return Said(code, _numbers(out.getvalue()).replace(str(folder), "") if code == 0 else "", told)


def _numbers(text: str) -> str:
    """JSON values, one on each line, without messages and times."""
    return "\n".join(json.dumps(_without(json.loads(line))) for line in text.splitlines() if line.strip())


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(one) for key, one in value.items() if key not in NOT_FOUND}
    return [_without(one) for one in value] if isinstance(value, list) else value


def meaning_of(file: Path) -> str:
    """The meaning of a file as text; '' for a file that only verbs read."""
    from tilewright.base.artifacts.codec import encode
    from tilewright.pipeline.sources import parse_accelerator, parse_mapping

    readers: dict[str, Callable[[Path], Any]] = {
        "narrow.yaml": parse_accelerator,
        "vector.yaml": parse_accelerator,
        "duo.yaml": parse_accelerator,
        "free.yaml": parse_mapping,
        "duo_mapping.yaml": parse_mapping,
        "vector_mapping.yaml": parse_mapping,
    }
    read = readers.get(file.name)
    if file.parent.name == "cores":
        return meaning_of(file.parent.parent / "duo.yaml")
    return "" if read is None else repr(encode(read(file)))


@cache
def untouched(case: Case, folder: Path) -> Said:
    """The outcome of the call with unchanged files; must be called before any file is changed."""
    return called(case, folder)


def mistake_in(file: Path, seed: int) -> Mistake:
    """The mistake of a seed in a file of any kind; the file itself is not changed."""
    content = file.read_bytes()
    if file.suffix == ".onnx":
        return Mistake(*onnx_mistake(content, seed))
    if file.suffix == ".jsonl":
        first, *others = content.decode().splitlines()
        made = mistake(json.loads(first), seed)
        line = json.dumps(yaml.safe_load(str(made.text)))
        if made.what == "repeated":
            line = re.sub(rf'("{made.words[0]}"):', r"\1: 77, \1:", first, count=1)
        return Mistake(made.what, made.words, "\n".join([line, *others]) + "\n")
    return mistake(yaml.safe_load(content), seed)


def mistake_in_options(arguments: Sequence[str], seed: int) -> tuple[str, tuple[str, ...], list[str]]:
    """(kind of mistake, words of which a message has at least one, the command line with the mistake)."""
    chance = random.Random(seed)
    places = [place for place, word in enumerate(arguments) if word.startswith("--") and word not in _FLAGS]
    kind = chance.choice(("misspelt option", "repeated option", "option of another verb"))
    if kind == "option of another verb" or not places:
        other = chance.choice(("--ga-generations=3", "--tile-z=2", "--core-allocation=[0]", "--dataflow=x", "--kernel"))
        return kind, (other.partition("=")[0],), [*arguments, other]
    place = chance.choice(places)
    flag = arguments[place]
    if kind == "repeated option":
        return kind, (flag, flag[2:].replace("-", "_")), [arguments[0], flag, arguments[place + 1], *arguments[1:]]
    word = f"--{misspelt(flag[2:], chance)}"
    return kind, (flag, word), [*arguments[:place], word, *arguments[place + 1 :]]


def outcome_of_line(case: Case, seed: int, folder: Path) -> Outcome:
    """The outcome of a call with the mistake of a seed in its options."""
    what, words, line = mistake_in_options(case.arguments(folder), seed)
    made = Mistake(what, words, " ".join(line))
    return Outcome(case.verb, made, *_judged(made, untouched(case, folder), called(case, folder, (), line), bool))


def outcome_of_call(case: Case, name: str, seed: int, folder: Path) -> Outcome:
    """The outcome of a call with the mistake of a seed in one of its files."""
    before, file = untouched(case, folder), folder / name
    content, meant = file.read_bytes(), meaning_of(file)
    made = mistake_in(file, seed)
    file.write_bytes(made.text if isinstance(made.text, bytes) else made.text.encode())
    try:
        after = called(case, folder)
        judged = _judged(made, before, after, lambda: meaning_of(file) != meant)
        # A layer is called as one likes, and what is found of a space names no layers.
        is_free = (case.verb, name, made.what, made.words[-1]) == ("explore", "layers.yaml", "misspelt name", "name")
        return Outcome(f"{case.verb} {name}", made, *((FREE, "") if is_free and judged[0] == SILENT else judged))
    finally:
        file.write_bytes(content)


def _judged(made: Mistake, before: Said, after: Said, means_else: Callable[[], bool]) -> tuple[str, str]:
    """(outcome, message) of a call with a mistake, compared with the call without it."""
    fresh = [line for line in after.told if line not in before.told]
    said = "\n".join(line for line in fresh if made.is_named_in(line))
    if after.code not in (0, 2):
        return CRASHED, "\n".join(after.told)
    if after.code == 2:
        return REFUSED, "\n".join(after.told)
    if said:
        return TOLD, said
    return (CHANGED if after.found != before.found or means_else() else SILENT), ""


def outcomes_of_calls(count: int, seed: int) -> Iterator[Outcome]:
    """Outcomes of this many calls with a mistake in a file or in the options; the cases are taken in turn."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_files(folder)
        for number in range(count):
            case = CASES[number % len(CASES)]
            place, chosen = number // len(CASES) % (len(case.files) + 1), seed * 1_000_003 + number
            if place == len(case.files):
                yield outcome_of_line(case, chosen, folder)
            else:
                yield outcome_of_call(case, case.files[place], chosen, folder)
