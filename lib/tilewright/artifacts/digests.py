"""Digests of content and of code. Standard library only: the Snakefile imports this at every parse.

A code digest as a parameter of a rule makes Snakemake rerun the rule when that code changes. It covers the raw bytes
of a *declared* set of parts of the package (`CODE_OF`); a unit test computes what each command really imports and
fails when the declared set is too small.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.artifacts.canonical import JsonValue, canonical_text
from tilewright.errors import InputError

DIGEST_BYTES = 16
PACKAGE = Path(__file__).resolve().parent.parent

_BASE = ("artifacts", "errors.py", "profile.py", "units.py", "validation.py", "yamlfile.py")
_TYPES = (
    *("workload/__init__.py", "workload/layer.py", "workload/graph.py", "workload/access.py"),
    *("workload/tensor.py", "workload/operator_groups.py"),
    *("hardware/__init__.py", "hardware/core.py"),
    *("mapping/__init__.py", "mapping/constraints.py"),
)
_STAGE = (
    *("stages/base.py", "stages/descriptions.py", "stages/user_errors.py"),
    *("workload/network_options.py", "workload/runnable.py"),
)
_MAP = (
    *(*_BASE, "sources.py", "cli/map.py", "cli/runs.py", "compiled.py"),
    *("workload", "hardware", "mapping", "cost", "search", "stages"),
)
_REPORT = (*_BASE, *_TYPES, "cli/runs.py", "report")
_WORKLOAD_REPORT = (
    *("report/__init__.py", "report/workload_tables.py", "report/tables.py", "report/records.py"),
    *("report/coverage_text.py", "report/short_names.py", "report/network_figure.py", "report/layered_layout.py"),
    *("report/canvas.py", "report/colours.py", "report/figure_layout.py"),
)

CODE_OF: dict[str, tuple[str, ...]] = {
    "parse_hardware": (*_BASE, *_TYPES, *_STAGE, "cli/parse_hardware.py", "stages/hardware_parser.py", "hardware"),
    "parse_workload": (
        *(*_BASE, *_TYPES, *_STAGE, *_WORKLOAD_REPORT),
        *("cli/parse_workload.py", "stages/workload_parsers.py", "workload"),
    ),
    "parse_mapping": (
        *(*_BASE, *_TYPES, *_STAGE, "cli/parse_mapping.py", "stages/mapping_parser.py"),
        *("mapping", "hardware", "workload/equation.py"),
    ),
    "map": _MAP,
    "export": (*_MAP, "report"),
    "report": (*_REPORT, "cli/report.py"),
    "check": (*_REPORT, "cli/check.py", "hardware"),
    "draw": (*_REPORT, "cli/report.py", "cli/draw.py", "hardware"),
    "pareto": (*_REPORT, "cli/report.py", "cli/pareto.py", "hardware"),
    "summarize": (*_REPORT, "cli/summarize.py"),
}
"""What each step of the pipeline runs: folders and modules of the package, relative to it.

`export` is what mapping runs besides, where a stage of its pipeline writes files.
"""


def content_digest(value: JsonValue) -> str:
    """Digest of a JSON value, in hexadecimal. The order of keys counts: in hardware files it has a meaning."""
    return _hexadecimal(canonical_text(value).encode())


def input_digest(path: Path | str) -> str:
    """Digest of what a file that a person wrote says: for YAML the parsed content, else the bytes.

    Comments, blanks and quoting do not count. A file that cannot be read or parsed gets a digest too, since saying
    what is wrong with it is the task of the step that reads it.
    """
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError:
        return "missing"
    if source.suffix in (".yaml", ".yml"):
        parsed = _parsed_yaml(source)
        if parsed is not None:
            return content_digest(parsed)
    return _hexadecimal(data)


def code_digest(step: str, package: Path | None = None) -> str:
    """Digest of the code that a step of the pipeline runs; `step` is a key of `CODE_OF`.

    Without `package` it is of the code that runs now, and computed once: searches ask for every layer.
    """
    return _running_code_digest(step) if package is None else _digest_of_files(step, package)


@cache
def _running_code_digest(step: str) -> str:
    return _digest_of_files(step, PACKAGE)


def _digest_of_files(step: str, package: Path) -> str:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for path in code_files(step, package):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def code_files(step: str, package: Path = PACKAGE) -> list[Path]:
    """The source files that a step declares, sorted, each once. Hidden and temporary files do not count."""
    files: set[Path] = set()
    for part in CODE_OF[step]:
        place = package / part
        files.update(place.rglob("*.py") if place.is_dir() else [place] if place.is_file() else [])
    return sorted(path for path in files if not path.name.startswith("."))


def _parsed_yaml(source: Path) -> Any:
    from tilewright.yamlfile import load_yaml

    try:
        return _plain(load_yaml(source).data)
    except InputError:
        return None


def _plain(value: Any) -> JsonValue:
    """YAML values as JSON values: keys as pairs with their type, everything that JSON lacks as text."""
    if isinstance(value, dict):
        return ["map", [[_plain(key), _plain(item)] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return ["text", repr(value)]


def _hexadecimal(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
