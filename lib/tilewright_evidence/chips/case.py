"""Published cases of chips: folders with input files, run options, measurements, and results of the reference tool.

docs/formats/spaces-and-cases.md#cases-of-chips has the format of the files.
"""

import math
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field
from tilewright.base.errors import InputError, Problem, Problems, nearest_name
from tilewright.base.objectives import Objective
from tilewright.base.validation import Count, PositiveCount, TableModel, validate
from tilewright.base.yamlfile import YamlDocument, items, load_yaml, table
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.nodes.tiling import BY_LAYER
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.options import CandidateSelection
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import SystemProblem, read_system_problem

from tilewright_evidence.chips.published_keys import hardware_with_keys, published_keys

VARIANT = "variant_"
WHERE_FROM = (
    "the published cases are files of Stream (github.com/KULeuven-MICAS/stream, branch `validation`), not part of this"
    " project: docs/formats/spaces-and-cases.md#cases-of-chips describes their format; to compare them, run `make"
    " validation VALIDATION=FOLDER`"
)
"""Note for messages: where to get the cases, which are not part of the project."""
_YAML = (".yaml", ".yml")
_NAMES = {
    "run": tuple(f"run{suffix}" for suffix in _YAML),
    "hardware": tuple(f"{stem}{suffix}" for stem in ("accelerator", "hardware") for suffix in _YAML),
    "workload": tuple(f"{stem}{suffix}" for stem in ("workload", "network") for suffix in (*_YAML, ".onnx")),
    "mapping": tuple(f"mapping{suffix}" for suffix in _YAML),
    "expected": tuple(f"expected{suffix}" for suffix in _YAML),
}
"""Possible names of a file, by kind of file. The first name that exists in a folder is used."""
NEEDED = ("run", "hardware", "workload", "mapping")
"""Kinds of files that each case must have."""


@dataclass(frozen=True)
class CaseFiles:
    """Files of a case.

    A variant of a case is a folder; its files replace the files of the case.
    """

    folder: Path
    variant: Path | None = None

    def find(self, kind: str) -> Path | None:
        """Path of the file of a kind; None if there is no such file."""
        folders = [self.folder] if self.variant is None else [self.variant, self.folder]
        return next((found for folder in folders if (found := _find(folder, kind))), None)

    def missing(self) -> list[Problem]:
        """Problems, one for each needed file that the case does not have."""
        allowed = {kind: " or ".join(_NAMES[kind]) for kind in NEEDED}
        return [
            Problem("is missing", str(self.folder / _NAMES[kind][0]), allowed=allowed[kind])
            for kind in NEEDED
            if self.find(kind) is None
        ]

    def notices(self) -> list[str]:
        """Notices, one for each file without effect. A file has no effect if another file of the same kind in the
        folder is used.
        """
        folders = [self.folder] if self.variant is None else [self.variant, self.folder]
        return [
            f"{folder / name}: has no effect, because {_find(folder, kind)} is used"
            for folder in folders
            for kind, names in _NAMES.items()
            for name in names
            if (folder / name).is_file() and folder / name != _find(folder, kind)
        ]


def find_cases(folder: Path, names: tuple[str, ...] = ()) -> dict[str, CaseFiles]:
    """Files of the cases in a folder, by name of the case: its path relative to the folder.

    If `folder` is itself a case, it is the only case, and its name is the name of the folder. Otherwise, all folders
    below `folder` are searched. A folder with any file of a case counts as a case, so that a case with a missing file
    is not ignored. Each case is followed by its variants.

    If `names` is not empty, only some cases are returned: cases with a name in `names`, cases in folders with a name in
    `names`, and variants of these cases. Raises InputError if there are no cases, or if a name does not exist.
    """
    if not folder.is_dir():
        raise InputError([Problem(f"no such folder; {WHERE_FROM}", value=str(folder), allowed="a folder of cases")])
    found: dict[str, CaseFiles] = {}
    for case in _case_folders(folder):
        name = case.resolve().name if case == folder else case.relative_to(folder).as_posix()
        found[name] = CaseFiles(case)
        for variant in sorted(case.glob(f"{VARIANT}*")):
            if variant.is_dir():
                found[f"{name}/{variant.name}"] = CaseFiles(case, variant)
    if not found:
        files = ", ".join(_NAMES[kind][0] for kind in NEEDED)
        raise InputError([Problem("has no case", str(folder), allowed=f"folders with {files}")])
    problems = [
        Problem(
            "no such case", path="case", value=name, allowed=", ".join(found), nearest=nearest_name(name, list(found))
        )
        for name in names
        if not any(_is_in(case, name) for case in found)
    ]
    if problems:
        raise InputError(problems)
    return {case: files for case, files in found.items() if not names or any(_is_in(case, name) for name in names)}


def _is_in(case: str, name: str) -> bool:
    return case == name or case.startswith(f"{name.rstrip('/')}/")


def _case_folders(folder: Path) -> list[Path]:
    """Folders of cases: the folder itself if it is a case, else all cases below it, sorted by path.

    Hidden folders are left out.
    """
    if any(_find(folder, kind) for kind in _NAMES):
        return [folder]
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [case for path in inside if not path.is_symlink() or path.exists() for case in _case_folders(path)]


def _find(folder: Path, kind: str) -> Path | None:
    """Path of the file of a kind in a folder; None if there is none.

    An ONNX network can have any name if it is the only ONNX file.
    """
    named = next((folder / name for name in _NAMES[kind] if (folder / name).is_file()), None)
    if named is None and kind == "workload":
        networks = sorted(folder.glob("*.onnx"))
        return networks[0] if len(networks) == 1 else None
    return named


@dataclass(frozen=True)
class Expected:
    """Published results of a case. An unknown result is None or {}."""

    measured_cycles: float | None = None
    """Latency that was measured on the chip, in cycles."""
    reference_cycles: float | None = None
    """Latency in cycles by the reference tool. The next field is the energy in pJ by the reference tool."""
    reference_energy_pj: float | None = None
    reference_nodes: int | None = None
    """Number of computation nodes in the graph of the reference tool. The next field is the number of edges in this
    graph.
    """
    reference_edges: int | None = None
    layer_cycles: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Cycles of one computation node in the reference tool, for each layer. The key is the layer id. The value is the
    tuple (temporal cycles, total0, total1, total2), as in `CaseRun.layer_cycles`.
    """


def read_expected(path: Path | None, notices: list[str]) -> Expected:
    """Published results in a file; all results are unknown if `path` is None. Keys that are only for people are
    ignored.

    If a value is not a number above 0, it counts as unknown, and a notice is added. Raises InputError if the file
    cannot be read.
    """
    if path is None:
        return Expected()
    document = load_yaml(path)
    problems, data = Problems(document), table(document.data)
    if not isinstance(document.data, dict):
        problems.at((), "must be a table of keys", document.data)
    nodes, edges = (_positive(problems, data, "graph", key) for key in ("nb_cns", "nb_edges"))
    found = Expected(
        measured_cycles=_positive(problems, data, "measured", "latency"),
        reference_cycles=_positive(problems, data, "reproduced", "latency"),
        reference_energy_pj=_positive(problems, data, "reproduced", "energy"),
        reference_nodes=None if nodes is None else round(nodes),
        reference_edges=None if edges is None else round(edges),
        layer_cycles=dict(_layer_cycles(table(data.get("layers")))),
    )
    problems.finish(notices)
    return found


def _positive(problems: Problems, data: dict[Any, Any], part: str, key: str) -> float | None:
    """Number at the key `key` of the table `part`. None if there is no value, or if the value is not a number above 0.
    In the second case, a notice is added.

    The number can also be text, because YAML reads some forms as text, for example 6.18e6.
    """
    value = table(data.get(part)).get(key)
    number = _number(value)
    if value is not None and number is None:
        problems.notice((part, key), f"is not a number above 0 and is ignored: {value!r}")
    return number


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number) or number <= 0:
        return None
    return number if isinstance(value, str) else value


def _layer_cycles(layers: dict[Any, Any]) -> list[tuple[int, tuple[int, ...]]]:
    """Pairs (layer id, cycles) of the layers whose key `cycles` has four integers. `Expected.layer_cycles` describes
    the four numbers. Other layers are left out.
    """
    found = []
    for layer, entry in layers.items():
        cycles = items(table(entry).get("cycles"))
        if str(layer).isdecimal() and len(cycles) == 4 and all(type(number) is int for number in cycles):
            found.append((int(layer), tuple(cycles)))
    return found


_FOR_PEOPLE = ("main", "commit", "zigzag", "workload_parser", "model")
"""Keys of a run file that only say where the file comes from. They have no effect."""


class RunEntry(TableModel):
    """Options with which a case runs, under their names in the reference tool."""

    model_config = ConfigDict(extra="ignore")

    cn_define_mode: Any = 1
    """Mode for cutting layers into computation nodes, as in `Cutting.cn_define_mode`. hint_loops, layer_cutoffs and
    split_W_percentage are options of the modes. null: the mapping file decides how layers are cut.
    """
    hint_loops: Any = None
    """Loops that decide how layers are cut, innermost first. Their meaning depends on `cn_define_mode`."""
    layer_cutoffs: list[int] = Field(default_factory=list)
    """Ids of layers. Layers before the first id are cut by the first list of `hint_loops`. Layers from the first id on,
    but before the second id, are cut by the second list, and so on. Only `cn_define_mode` 3 uses these ids.
    """
    split_W_percentage: float = Field(default=1.0, gt=0, le=1)  # noqa: N815  as in the files
    """Largest share of a memory that weights can take. Only `cn_define_mode` 4 uses this share."""
    operands_to_prefetch: list[str] = Field(default_factory=list)
    """Layer operands that are prefetched."""
    scheduler_candidate_selection: CandidateSelection = "memory"
    """Rule by which the scheduler chooses the next computation node."""
    loma_lpf_limit: PositiveCount = 6
    """Largest number of loop prime factors that the search for loop orders permutes. If a layer has more, factors of
    the same dimension are merged.
    """
    intra_core_objective: Objective = "latency"
    """Objective of the search for the mapping of a computation node on a core."""
    nb_ga_individuals: int = Field(default=16, ge=2)
    """Number of allocations in a population of the genetic algorithm. It has no effect if each layer can run on only
    one core.
    """
    nb_ga_generations: Count = 16
    """Number of generations of the genetic algorithm after the first population."""

    @property
    def tiling(self) -> TilingOptions:
        """Options that decide how layers are cut into computation nodes.

        If `cn_define_mode` is 1 and `hint_loops` is a table, each layer has its own loops. Raises InputError for wrong
        options.
        """
        mode = self.cn_define_mode
        return TilingOptions(
            cn_define_mode=BY_LAYER if mode == 1 and isinstance(self.hint_loops, Table) else mode,
            hint_loops=self.hint_loops,
            layer_cutoffs=tuple(self.layer_cutoffs),
            split_W_percentage=self.split_W_percentage,
        )


@dataclass(frozen=True)
class SiliconCase:
    """Case of a chip, read from its files and checked."""

    name: str
    system: SystemProblem
    run: RunEntry
    expected: Expected
    notices: tuple[str, ...] = ()
    keyed: SystemProblem | None = None
    """System of the case with the published keys of its chip (`published_keys`); None if the chip has none."""

    @property
    def tiling(self) -> TilingOptions:
        """Options for cutting the layers into computation nodes."""
        return self.run.tiling

    @property
    def allocation(self) -> AllocationOptions:
        """Options of the search for the allocation, which chooses a core for each layer that can run on several
        cores.
        """
        return AllocationOptions(
            nb_ga_individuals=self.run.nb_ga_individuals, nb_ga_generations=self.run.nb_ga_generations
        )


def read_case(name: str, files: CaseFiles) -> SiliconCase:
    """Case, read from its files. Raises InputError with all mistakes in the files."""
    problems, notices = Problems(), files.notices()
    problems.found += files.missing()
    run_file, hardware, workload, mapping, expected_file = map(
        files.find, ("run", "hardware", "workload", "mapping", "expected")
    )
    run = problems.attempt(_read_run, run_file, notices) if run_file else None
    expected = problems.attempt(read_expected, expected_file, notices)
    system, keyed = None, None
    if hardware and workload and mapping:
        system = problems.attempt(read_system_problem, Descriptions(hardware, workload, mapping))
    problems.finish()
    assert hardware is not None
    keys = published_keys(name, hardware)
    if keys:
        keyed = read_system_problem(Descriptions(hardware_with_keys(hardware, keys), workload, mapping))
    assert run is not None
    assert expected is not None
    assert system is not None
    return SiliconCase(name, system, run, expected, (*notices, *system.notices), keyed)


def _read_run(path: Path, notices: list[str]) -> RunEntry:
    document = load_yaml(path)
    problems = Problems(document)
    run: RunEntry = validate(RunEntry, document.data, problems)
    known = (*RunEntry.model_fields, *_FOR_PEOPLE)
    for key in table(document.data):
        if key not in known:
            problems.notice((key,), "has no effect")
    problems.finish(notices)
    try:
        run.tiling  # noqa: B018  wrong values are told with their place in the file
    except InputError as error:
        raise InputError([_placed(problem, document) for problem in error.problems]) from None
    return run


def _placed(problem: Problem, document: YamlDocument) -> Problem:
    key = problem.path.partition("[")[0]
    return replace(problem, file=document.file, line=document.line_of((key,)))
