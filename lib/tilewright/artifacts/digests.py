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

_BASE = (
    *("artifacts", "causes.py", "errors.py", "file_kinds.py", "profile.py", "registry.py", "units.py"),
    *("validation.py", "yamlfile.py"),
)
_TYPES = (
    *("workload/__init__.py", "workload/layer.py", "workload/graph.py", "workload/access.py"),
    *("workload/graph.py", "workload/operator_groups.py", "workload/layer.py"),
    *("hardware/__init__.py", "hardware/core.py"),
    *("mapping/__init__.py", "mapping/constraints.py"),
)
_READING = (
    *("peers/__init__.py", "peers/zigzag/__init__.py"),
    *("peers/zigzag/onnx_operands.py", "peers/zigzag/onnx_reading.py"),
)
_ZIGZAG = (*_READING, "peers/zigzag/data_locality.py")
_STAGE = (
    *("stages/base.py", "stages/descriptions.py", "stages/user_errors.py"),
    *("workload/network_options.py", "workload/runnable.py"),
)
_SEARCH = (
    *("stages/__init__.py", "stages/base.py", "stages/catalogue.py", "stages/costing.py", "stages/data_locality.py"),
    *("stages/default.py", "stages/descriptions.py", "stages/entries.py", "stages/failures.py", "stages/findings.py"),
    *("stages/flow.py", "stages/hardware_parser.py", "stages/identity.py", "stages/items.py"),
    *("stages/layer_search.py", "stages/layers.py"),
    *("stages/mapping_parser.py", "stages/parameters.py", "stages/passing.py"),
    *("stages/pipeline.py", "stages/pipeline_order.py", "stages/plotting.py", "stages/reductions.py"),
    *("stages/results.py", "stages/run.py", "stages/saving.py", "stages/spatial.py", "stages/spatial_custom.py"),
    *("stages/tally.py", "stages/temporal.py", "stages/user_errors.py", "stages/user_stages.py"),
    *("stages/workload.py", "stages/workload_parsers.py"),
)
"""The stages that map a layer or a network on one core."""
_MAP = (
    *(*_BASE, "sources.py", "cli/map.py", "cli/runs.py", "compiled.py", "record_pointer.py"),
    *("workload", "hardware", "mapping", "cost", "search", *_SEARCH, *_ZIGZAG),
    *("stages/cut_lanes_notices.py", "stages/written_files.py"),
)
_SLICE = (
    *("stages/findings.py", "stages/parameters.py", "stages/slices.py", "search/__init__.py", "search/options.py"),
)
"""The stages that a verb of the multi-core flow runs."""
_MULTI = (
    *(
        *_BASE,
        *_TYPES,
        *_STAGE,
        "cli/multi_runs.py",
        "cli/run_inputs.py",
        "sources.py",
        "compiled.py",
        "record_pointer.py",
        "search/__init__.py",
    ),
    *("workload", "hardware", "mapping", "fusion", "scheduling", "allocation", "search/options.py"),
    *(
        "stages/multi_run.py",
        "stages/origins.py",
        "stages/multi_inputs.py",
        "stages/multi_items.py",
        "stages/preflight_needs.py",
        "stages/system_problem.py",
    ),
    *("stages/hardware_parser.py", "stages/workload_parsers.py", *_READING, "peers/stream"),
    *(*_SLICE, "stages/multi_allocation.py", "stages/multi_result.py"),
)
_PREFLIGHT = (
    *("stages/preflight.py", "stages/preflight_cores.py", "stages/preflight_dataflows.py"),
    *("stages/preflight_exchange.py", "stages/preflight_files.py", "stages/preflight_memories.py"),
    *("stages/preflight_needs.py", "stages/preflight_stacks.py", "stages/preflight_tiles.py"),
)
_MULTI_PIPELINE = (
    *("workload", "hardware", "mapping", "cost", "search", "fusion", "scheduling", "allocation", "stages"),
    *(*_ZIGZAG, "peers/stream"),
)
_REPORT = (
    *(*_BASE, *_TYPES, "cli/runs.py", "report/__init__.py", "report/access_checks.py"),
    *("report/canvas.py", "report/checks.py", "report/colours.py", "report/coverage_text.py"),
    *("report/figure_layout.py", "report/figures.py", "report/hierarchy_figure.py", "report/loop_nest.py"),
    *("report/nest_figure.py", "report/nest_layout.py", "report/pareto.py", "report/pareto_figure.py"),
    *("report/legends.py", "report/locality_text.py", "report/printable.py", "report/records.py"),
    *("report/short_names.py", "report/states.py", "report/tables.py"),
)
"""Of runs on one core; what draws schedules is not in it."""
_WORKLOAD_REPORT = (
    *("report/__init__.py", "report/workload_tables.py", "report/tables.py", "report/records.py", "report/legends.py"),
    *("report/coverage_text.py", "report/short_names.py", "report/network_figure.py", "report/network_figure.py"),
    *("report/canvas.py", "report/colours.py", "report/figure_layout.py", "report/locality_text.py"),
    "report/printable.py",
)

CODE_OF: dict[str, tuple[str, ...]] = {
    "parse_hardware": (*_BASE, *_TYPES, *_STAGE, "cli/parse_hardware.py", "stages/hardware_parser.py", "hardware"),
    "parse_workload": (
        *(*_BASE, *_TYPES, *_STAGE, *_WORKLOAD_REPORT),
        *("cli/parse_workload.py", "stages/workload_parsers.py", "workload", *_READING),
    ),
    "parse_mapping": (
        *(*_BASE, *_TYPES, *_STAGE, "cli/parse_mapping.py", "stages/mapping_parser.py"),
        *("mapping", "hardware", "workload/equation.py", "workload/layer.py"),
    ),
    "map": _MAP,
    "export": (*_MAP, "report", "peers/zigzag/exports"),
    "split": (
        *(*_BASE, *_TYPES, *_STAGE, "cli/split.py", "sources.py"),
        *("workload", "hardware", "mapping", "fusion", "compiled.py", *_READING),
        *("stages/system_problem.py", "stages/hardware_parser.py", "stages/workload_parsers.py", *_PREFLIGHT),
    ),
    "cns": (
        *(*_BASE, *_TYPES, *_STAGE, "cli/cns.py"),
        *("workload", "hardware", "mapping", "fusion", "compiled.py", "sources.py", "stages/system_problem.py"),
        *_READING,
        *("stages/hardware_parser.py", "stages/workload_parsers.py", "stages/multi_items.py", *_PREFLIGHT),
        *(*_SLICE, "stages/multi_tiling.py"),
    ),
    "cost": (
        *(*_BASE, "sources.py", "cli/cost.py", "compiled.py", "record_pointer.py"),
        *("workload", "hardware", "mapping", "cost", "search", *_SEARCH, *_ZIGZAG, "fusion"),
        *("stages/cn_needs.py", "stages/cost_rows.py", "stages/intra_core_mapping.py", "stages/multi_inputs.py"),
        *("stages/origins.py", "stages/multi_items.py", "stages/operand_streaming.py", "stages/spatial_choice.py"),
        *("stages/system_problem.py", "stages/preflight_needs.py", "scheduling/__init__.py"),
        *("stages/cut_lanes_of_cns.py", "stages/preflight_dataflows.py", "stages/multi_costs.py", *_SLICE),
        *("scheduling/core_costs.py", "scheduling/cost_classes.py"),
    ),
    "multi_pipeline": (
        *_BASE,
        "compiled.py",
        "record_pointer.py",
        "sources.py",
        "cli/multi_slices.py",
        *_MULTI_PIPELINE,
    ),
    "allocate": (*_MULTI, "cli/allocate.py", "cli/runs.py"),
    "schedule": (*_MULTI, "cli/schedule.py", "report/__init__.py", "report/multi/summary.py"),
    "report": (*_REPORT, "cli/report.py", "cli/multi_runs.py"),
    "check": (*_REPORT, "cli/check.py", "cli/multi_runs.py", "hardware"),
    "check_multi": (
        *(*_MULTI, "cli/check.py", "cli/check_multi.py", "cli/runs.py"),
        *("report/__init__.py", "report/checks.py", "report/multi/__init__.py", "report/multi/checks.py"),
        "report/multi/summary.py",
        *("report/access_checks.py", "report/records.py", "report/short_names.py"),
    ),
    "draw": (
        *(*_REPORT, "cli/report.py", "cli/multi_runs.py", "cli/draw.py", "hardware"),
        *("report/multi/__init__.py", "report/multi/system_figure.py"),
    ),
    "report_multi": (
        *(*_BASE, *_TYPES, "cli/report.py", "cli/report_multi.py", "cli/multi_runs.py", "compiled.py"),
        *(
            "record_pointer.py",
            "report",
            "report/multi/schedule_page.html",
            "report/multi/schedule_data.js",
            "report/multi/schedule_lanes.js",
            "report/multi/schedule_viewer.js",
        ),
        *("workload", "hardware", "mapping", "fusion", "scheduling", "peers/__init__.py", "peers/stream"),
    ),
    "pareto": (*_REPORT, "cli/report.py", "cli/multi_runs.py", "cli/pareto.py"),
    "summarize": (*_REPORT, "cli/summarize.py", "report/run_tables.py"),
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
            return said_digest(parsed)
    return _hexadecimal(data)


def bytes_digest(path: Path | str) -> str:
    """Digest of the bytes of a file."""
    return _hexadecimal(Path(path).read_bytes())


def said_digest(value: Any) -> str:
    """Digest of data of a YAML file, or of a part of them. Types and the order of keys count."""
    return content_digest(_plain(value))


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
        return load_yaml(source).data
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
