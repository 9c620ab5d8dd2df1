"""A published case as a folder: accelerator, workload, mapping, how it is run, and what is known of the result.

`accelerator.yaml`, `workload.yaml` (or `workload.onnx`), `mapping.yaml`, `run.yaml` and, where something is known,
`expected.yaml`. Each folder `variant_*` in it is the same case with other files in place of those of the case.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from tilewright.allocation.options import AllocationOptions
from tilewright.errors import InputError, Problem, nearest_name
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.system_problem import SystemProblem, read_system_problem
from tilewright.validation import Count, Entry, Findings, PositiveCount, items, table, validate
from tilewright.yamlfile import load_yaml

RUN, EXPECTED, VARIANT = "run.yaml", "expected.yaml", "variant_"
_DESCRIPTIONS = {
    "hardware": ("accelerator.yaml",),
    "workload": ("workload.yaml", "workload.onnx"),
    "mapping": ("mapping.yaml",),
}
_FOR_PEOPLE = ("main", "commit", "zigzag", "workload_parser", "model")
"""Keys of a run file that say where it comes from."""


class RunEntry(Entry):
    """How a case is run: the names of the reference tool."""

    model_config = ConfigDict(extra="ignore")

    cn_define_mode: int = 1
    """How layers are cut, with hint_loops and layer_cutoffs."""
    hint_loops: Any = None
    """Loops around the computation nodes, the innermost first."""
    layer_cutoffs: list[int] = Field(default_factory=list)
    """Mode 3: ids of layers at which the next list of hint_loops begins."""
    split_W_percentage: float = Field(default=1.0, gt=0, le=1)  # noqa: N815  as in the files
    """Mode 4: share of a memory that weights may take."""
    operands_to_prefetch: list[str] = Field(default_factory=list)
    """Layer operands that are fetched ahead."""
    scheduler_candidate_selection: Literal["latency", "memory"] = "memory"
    """Which computation node goes first."""
    loma_lpf_limit: PositiveCount = 6
    """Loop prime factors that the search for loop orders permutes."""
    intra_core_objective: Literal["latency", "energy", "EDP"] = "latency"
    """What the mapping of a computation node on a core minimises."""
    nb_ga_individuals: int = Field(default=16, ge=2)
    """Allocations in a population, where layers may run on several cores."""
    nb_ga_generations: Count = 16
    """Populations after the first."""


@dataclass(frozen=True)
class Expected:
    """What is known of a case; None and {} where nothing is."""

    measured_cycles: float | None = None
    """On the chip."""
    reference_cycles: float | None = None
    """By the reference tool, as is the energy."""
    reference_energy_pj: float | None = None
    reference_nodes: int | None = None
    """Computation nodes, then edges."""
    reference_edges: int | None = None
    layer_cycles: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Layer id -> (temporal cycles, total0, total1, total2) of a computation node, by the reference tool."""


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
        run = self.run
        return TilingOptions(
            cn_define_mode=run.cn_define_mode,
            hint_loops=run.hint_loops,
            layer_cutoffs=tuple(run.layer_cutoffs),
            split_w_percentage=run.split_W_percentage,
        )

    @property
    def allocation(self) -> AllocationOptions:
        """How cores are chosen where there is a choice."""
        return AllocationOptions(
            nb_ga_individuals=self.run.nb_ga_individuals, nb_ga_generations=self.run.nb_ga_generations
        )


def find_cases(folder: Path, names: tuple[str, ...] = ()) -> tuple[tuple[str, Path, Path | None], ...]:
    """(name, folder of the case, folder of the variant or None) of all cases in a folder, or in it as a case itself.

    With names only these; a case brings its variants. Raises InputError where there are none of them.
    """
    if not folder.is_dir():
        raise InputError([Problem("no such folder", value=str(folder), allowed="a folder of cases")])
    is_case = (folder / RUN).is_file()
    cases = [folder] if is_case else sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    found: dict[str, tuple[Path, Path | None]] = {}
    for case in cases:
        found[case.resolve().name] = case, None
        for variant in sorted(case.glob(f"{VARIANT}*")):
            if variant.is_dir():
                found[f"{case.resolve().name}/{variant.name}"] = case, variant
    if not found:
        raise InputError([Problem(f"has no case: a folder with {RUN}", str(folder))])
    problems = [
        Problem(
            "no such case", path="case", value=name, allowed=", ".join(found), nearest=nearest_name(name, list(found))
        )
        for name in names
        if name not in found
    ]
    if problems:
        raise InputError(problems)
    wanted = [name for name in found if not names or name in names or name.partition("/")[0] in names]
    return tuple((name, *found[name]) for name in wanted)


def read_case(name: str, case: Path, variant: Path | None = None) -> SiliconCase:
    """A case from its folder. Raises InputError with everything that is wrong with its files."""
    problems: list[Problem] = []
    notices: list[str] = []
    files = {kind: _file(case, variant, names, problems) for kind, names in _DESCRIPTIONS.items()}
    run = system = None
    expected = Expected()
    try:
        run = _read_run(_place(case, variant, RUN), notices)
        expected = _read_expected(_place(case, variant, EXPECTED))
    except InputError as error:
        problems += error.problems
    if not problems:
        system = read_system_problem(Descriptions(files["hardware"], files["workload"], files["mapping"]))
        notices += system.notices
    if problems:
        raise InputError(problems)
    assert run is not None
    assert system is not None
    return SiliconCase(name, system, run, expected, tuple(notices))


def _place(case: Path, variant: Path | None, name: str) -> Path:
    return variant / name if variant is not None and (variant / name).is_file() else case / name


def _file(case: Path, variant: Path | None, names: tuple[str, ...], problems: list[Problem]) -> Path:
    folders = [case] if variant is None else [variant, case]
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return folder / name
    problems.append(Problem("is missing", str(case / names[0])))
    return case / names[0]


def _read_run(path: Path, notices: list[str]) -> RunEntry:
    findings = Findings(load_yaml(path))
    run: RunEntry = validate(RunEntry, findings)
    known = (*RunEntry.model_fields, *_FOR_PEOPLE)
    for key in table(findings.document.data):
        if key not in known:
            findings.notice((key,), "has no effect")
    findings.finish(notices)
    return run


def _read_expected(path: Path) -> Expected:
    """What a file of results says; it may have more, for people."""
    if not path.is_file():
        return Expected()
    data = load_yaml(path).data
    measured, reproduced, graph = (table(table(data).get(key)) for key in ("measured", "reproduced", "graph"))
    layers = table(table(data).get("layers"))
    return Expected(
        measured_cycles=_number(measured.get("latency")),
        reference_cycles=_number(reproduced.get("latency")),
        reference_energy_pj=_number(reproduced.get("energy")),
        reference_nodes=_whole(graph.get("nb_cns")),
        reference_edges=_whole(graph.get("nb_edges")),
        layer_cycles={
            layer: tuple(cycles)
            for layer, entry in layers.items()
            if type(layer) is int and len(cycles := items(table(entry).get("cycles"))) == 4
        },
    )


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
