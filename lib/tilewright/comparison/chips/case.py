"""A published case: accelerator, workload, mapping, how it is run, and what is known of the result.

docs/validation.md has the format of the files.
"""

from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from tilewright.allocation.options import AllocationOptions
from tilewright.comparison.chips.case_files import CaseFiles
from tilewright.comparison.chips.expected import Expected, read_expected
from tilewright.errors import InputError, Problem, Problems
from tilewright.fusion.hint_loops import BY_LAYER
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.scheduling.options import CandidateSelection
from tilewright.search.options import Objective
from tilewright.stages.descriptions import Descriptions
from tilewright.stages.system_problem import SystemProblem, read_system_problem
from tilewright.validation import Count, Entry, PositiveCount, validate
from tilewright.yamlfile import YamlDocument, load_yaml, table

_FOR_PEOPLE = ("main", "commit", "zigzag", "workload_parser", "model")
"""Keys of a run file that say where it comes from."""


class RunEntry(Entry):
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
