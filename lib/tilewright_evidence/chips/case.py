"""Published cases of chips: their folders, descriptions, how each is run, and the measured and reference results.

docs/formats.md#cases-of-chips has the format of the files.
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

VARIANT = "variant_"
WHERE_FROM = (
    "the published cases are files of Stream (github.com/KULeuven-MICAS/stream, branch `validation`), not part of this"
    " project: docs/formats.md#cases-of-chips says how to write them down; then `make validation VALIDATION=FOLDER`"
)
"""Where a folder of cases comes from, which no clone of the project has."""
_YAML = (".yaml", ".yml")
_NAMES = {
    "run": tuple(f"run{suffix}" for suffix in _YAML),
    "hardware": tuple(f"{stem}{suffix}" for stem in ("accelerator", "hardware") for suffix in _YAML),
    "workload": tuple(f"{stem}{suffix}" for stem in ("workload", "network") for suffix in (*_YAML, ".onnx")),
    "mapping": tuple(f"mapping{suffix}" for suffix in _YAML),
    "expected": tuple(f"expected{suffix}" for suffix in _YAML),
}
"""Kind of file -> its names; the first one that a folder has counts."""
NEEDED = ("run", "hardware", "workload", "mapping")
"""The kinds that every case has."""


@dataclass(frozen=True)
class CaseFiles:
    """The files of a case; a variant has some of its own in place of those of the case."""

    folder: Path
    variant: Path | None = None

    def find(self, kind: str) -> Path | None:
        """The file of a kind, None if there is none."""
        folders = [self.folder] if self.variant is None else [self.variant, self.folder]
        return next((found for folder in folders if (found := _find(folder, kind))), None)

    def missing(self) -> list[Problem]:
        """A problem for each file that a case needs and this one lacks."""
        allowed = {kind: " or ".join(_NAMES[kind]) for kind in NEEDED}
        return [
            Problem("is missing", str(self.folder / _NAMES[kind][0]), allowed=allowed[kind])
            for kind in NEEDED
            if self.find(kind) is None
        ]

    def notices(self) -> list[str]:
        """A notice for each file that has no effect, because another one of the folder says the same thing."""
        folders = [self.folder] if self.variant is None else [self.variant, self.folder]
        return [
            f"{folder / name}: has no effect beside {_find(folder, kind)}"
            for folder in folders
            for kind, names in _NAMES.items()
            for name in names
            if (folder / name).is_file() and folder / name != _find(folder, kind)
        ]


def find_cases(folder: Path, names: tuple[str, ...] = ()) -> dict[str, CaseFiles]:
    """Name -> files of all cases in a folder, or of the folder as a case itself; each before its variants.

    A folder is a case if it has any of the files of one, so that a case from which one is missing is not passed over;
    others may have cases in them. Names are paths below the folder. With `names` only those, what is in them, and
    their variants. Raises InputError where there are none of them.
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
    """The folder if it is a case, else all cases in it, in the order of their paths; hidden folders are left out."""
    if any(_find(folder, kind) for kind in _NAMES):
        return [folder]
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [case for path in inside if not path.is_symlink() or path.exists() for case in _case_folders(path)]


def _find(folder: Path, kind: str) -> Path | None:
    """The file of a kind in a folder; a network may have any name if it is the only ONNX file."""
    named = next((folder / name for name in _NAMES[kind] if (folder / name).is_file()), None)
    if named is None and kind == "workload":
        networks = sorted(folder.glob("*.onnx"))
        return networks[0] if len(networks) == 1 else None
    return named


@dataclass(frozen=True)
class Expected:
    """What is known of a case; None and {} where nothing is."""

    measured_cycles: float | None = None
    """Cycles on the chip."""
    reference_cycles: float | None = None
    """Cycles by the reference tool, as is the energy."""
    reference_energy_pj: float | None = None
    reference_nodes: int | None = None
    """Computation nodes, then edges."""
    reference_edges: int | None = None
    layer_cycles: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Layer id -> (temporal cycles, total0, total1, total2) of a computation node, by the reference tool."""


def read_expected(path: Path | None, notices: list[str]) -> Expected:
    """What a file says; it may have more, for people. Numbers that are none count as unknown, and a notice says so.

    Raises InputError if the file cannot be read.
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
    """A number above 0, also one that YAML reads as text (6.18e6)."""
    value = table(data.get(part)).get(key)
    number = _number(value)
    if value is not None and number is None:
        problems.notice((part, key), f"is no number above 0, and counts as unknown: {value!r}")
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
    """(layer id, its four numbers of cycles) where they are whole numbers."""
    found = []
    for layer, entry in layers.items():
        cycles = items(table(entry).get("cycles"))
        if str(layer).isdecimal() and len(cycles) == 4 and all(type(number) is int for number in cycles):
            found.append((int(layer), tuple(cycles)))
    return found


_FOR_PEOPLE = ("main", "commit", "zigzag", "workload_parser", "model")
"""Keys of a run file that say where it comes from."""


class RunEntry(TableModel):
    """How a case is run: the names of the reference tool."""

    model_config = ConfigDict(extra="ignore")

    cn_define_mode: Any = 1
    """How layers are cut, with hint_loops and layer_cutoffs; null: by the tilings of the mapping file."""
    hint_loops: Any = None
    """Loops around the computation nodes, the innermost first."""
    layer_cutoffs: list[int] = Field(default_factory=list)
    """Mode 3: ids of layers at which the next list of hint_loops begins."""
    split_W_percentage: float = Field(default=1.0, gt=0, le=1)  # noqa: N815  as in the files
    """Mode 4: share of a memory that weights may take."""
    operands_to_prefetch: list[str] = Field(default_factory=list)
    """Layer operands that are fetched ahead."""
    scheduler_candidate_selection: CandidateSelection = "memory"
    """Which computation node goes first."""
    loma_lpf_limit: PositiveCount = 6
    """Loop prime factors that the search for loop orders permutes."""
    intra_core_objective: Objective = "latency"
    """What the mapping of a computation node on a core minimises."""
    nb_ga_individuals: int = Field(default=16, ge=2)
    """Allocations in a population, where layers may run on several cores."""
    nb_ga_generations: Count = 16
    """Populations after the first."""

    @property
    def tiling(self) -> TilingOptions:
        """How the layers are cut; a table of loops says that layers have loops of their own. Raises InputError."""
        mode = self.cn_define_mode
        return TilingOptions(
            cn_define_mode=BY_LAYER if mode == 1 and isinstance(self.hint_loops, Table) else mode,
            hint_loops=self.hint_loops,
            layer_cutoffs=tuple(self.layer_cutoffs),
            split_W_percentage=self.split_W_percentage,
        )


@dataclass(frozen=True)
class SiliconCase:
    """A case, read and checked."""

    name: str
    system: SystemProblem
    run: RunEntry
    expected: Expected
    notices: tuple[str, ...] = ()

    @property
    def tiling(self) -> TilingOptions:
        """How the layers are cut."""
        return self.run.tiling

    @property
    def allocation(self) -> AllocationOptions:
        """How cores are chosen where there is a choice."""
        return AllocationOptions(
            nb_ga_individuals=self.run.nb_ga_individuals, nb_ga_generations=self.run.nb_ga_generations
        )


def read_case(name: str, files: CaseFiles) -> SiliconCase:
    """A case from its files. Raises InputError with everything that is wrong with them."""
    problems, notices = Problems(), files.notices()
    problems.found += files.missing()
    run_file, hardware, workload, mapping, expected_file = map(
        files.find, ("run", "hardware", "workload", "mapping", "expected")
    )
    run = problems.attempt(_read_run, run_file, notices) if run_file else None
    expected = problems.attempt(read_expected, expected_file, notices)
    system = None
    if hardware and workload and mapping:
        system = problems.attempt(read_system_problem, Descriptions(hardware, workload, mapping))
    problems.finish()
    assert run is not None
    assert expected is not None
    assert system is not None
    return SiliconCase(name, system, run, expected, (*notices, *system.notices))


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
