"""`tilewright decide`: page that chooses one design of an explored space.

Each statement on the page has the command that reproduces it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath, write_atomically
from tilewright.base.artifacts.folder_lock import holding
from tilewright.base.errors import InputError, Problem, count_of, nearest_name
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.base.objectives import DECISIONS, energy_notices
from tilewright.base.objectives import OBJECTIVES as OBJECTIVES_OF_SEARCH
from tilewright.base.parameters import OneOf
from tilewright.base.steps import DECISION, DECISION_TABLE
from tilewright.cli.folder_kinds import kind_of_folder, said_of_folder
from tilewright.cli.options import echo_json, echo_notices, echo_paths
from tilewright.cli.space_path import missing_space_text, space_path_in
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.results.sheet import PaperWidth, drawn_for, sheet_inches

if TYPE_CHECKING:
    from tilewright.designs.answer import Answer
    from tilewright.designs.decision import Decision
    from tilewright.designs.decision_bounds import MappingBounds
    from tilewright.designs.decision_text import Statement
    from tilewright.designs.space import Network, Space

TEXT, PAGE, TABLE = *DECISION, DECISION_TABLE
BOUNDS = "bounds"
"""Name of the folder for the runs of --bounds, in the folder of the exploration."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Decision for one design of a space, with the statements that support it."""

    decision: "Decision"
    statements: "tuple[Statement, ...]"
    files: tuple[Path, ...]
    """Paths of the page in Markdown and in HTML, and of the table for a paper."""

    def __repr__(self) -> str:
        from tilewright.designs.decision_text import decision_text

        return decision_text(self.decision, self.statements)


def _decided(
    folder: FilePath,
    objective: str,
    advice: bool,
    bounds: bool,
    space: FilePath | None,
    network: str | None,
    write: bool,
    jobs: int,
) -> Decided:
    from tilewright.designs.decision import decision_of
    from tilewright.designs.decision_bounds import no_runner_up_statement
    from tilewright.designs.decision_gaps import latency_statements, search_statements, unbounded_statements
    from tilewright.designs.decision_page import decision_page
    from tilewright.designs.decision_text import Commands, decision_markdown, statements
    from tilewright.designs.decision_trials import base_statements, doubtful_statements, free_statements
    from tilewright.designs.space_reader import read_space
    from tilewright.designs.static_gaps import static_power_statements

    folder = Path(folder)
    path = _space_path(folder, None if space is None else Path(space))
    read = read_space(path, [])
    answer = _answer(read, path, folder, network)
    if objective in OBJECTIVES_OF_SEARCH:
        told = energy_notices(objective, answer.exploration.energies_pj, "designs")
        if told:
            raise InputError(notice.problem for notice in told)
    decision = decision_of(answer, objective)
    only = network if network is not None and len(read.networks) > 1 else ""
    commands = Commands(path, folder, decision.answer.exploration.networks, only)
    with drawn_for(None):  # the reports of the runs below are no part of a paper
        further = [*base_statements(decision, read, commands), *free_statements(decision, read, commands)]
        further += search_statements(decision, read, commands, objective)
        further += latency_statements(decision, read)
        further += doubtful_statements(decision, read)
        further += static_power_statements(decision, read, commands)
        if bounds and decision.runner_up is not None:
            decision, of_bounds = _with_bounds(read, decision, folder, objective, jobs)
            further += of_bounds
        elif bounds:
            further.append(no_runner_up_statement(decision))
        else:
            further += unbounded_statements(decision, read, commands, objective)
        further += _next(read, decision, folder, jobs) if advice else []
    made = statements(decision, commands, further)
    if not write:
        return Decided(decision, made, ())
    files = folder / TEXT, folder / PAGE
    with holding(folder):
        echo_notices(_left_out(files[0], decision, made))
        write_atomically(files[0], decision_markdown(decision, made))
        write_atomically(files[1], decision_page(decision, made))
        tables = _table_files(decision, folder)
    return Decided(decision, made, (*files, *tables))


def _left_out(page: Path, decision: "Decision", made: "Sequence[Statement]") -> list[str]:
    """Notices of options whose statements are on the earlier page of the same decision, but not on the new page."""
    from tilewright.base.harmless import markdown
    from tilewright.designs.decision_bounds import AFTER_BOUNDS
    from tilewright.designs.decision_text import NEXT, heading

    earlier = page.read_text("utf-8", "replace") if page.is_file() else ""
    if not earlier.startswith(f"# {markdown(heading(decision))}\n"):
        return []
    has_advice = any(one.topic == NEXT for one in made)
    has_bounds = any(one.text.startswith(AFTER_BOUNDS) for one in made)
    options = {
        "--advice": f"\n## {NEXT}\n" in earlier and not has_advice,
        "--bounds": f"\n{markdown(AFTER_BOUNDS)}" in earlier and not has_bounds,
    }
    return [
        f"{page}: the earlier page had statements from `{option}`, the new page has none; add `{option}` to keep them"
        for option, is_lost in options.items()
        if is_lost
    ]


def _table_files(decision: "Decision", folder: Path) -> tuple[Path, ...]:
    """Write the table of the decision for a paper. In this table, an axis with the same value in all rows is not a
    column but a note.

    If no width of a paper is set, nothing is written. In this case, the files of an earlier table are removed if its
    numbers differ from the numbers of this decision.
    """
    from tilewright.base.harmless import csv_text
    from tilewright.designs.results import value_text
    from tilewright.designs.table_files import units_in_paper
    from tilewright.results.other_widths import remove_files
    from tilewright.results.paper_tables import write_table

    table, path = decision.table, folder / TABLE
    if sheet_inches() is None:
        if path.is_file() and path.read_bytes() != csv_text(table).encode():
            remove_files(folder.glob(f"{path.stem}*"))
        return ()
    constant = [name for name in decision.answer.exploration.axis_names if table[name].nunique() == 1]
    shown = table.assign(**{name: table[name].map(value_text) for name in constant})
    units = units_in_paper(decision.answer)
    return write_table(table, path, for_paper=shown, notes=decision.answer.warnings, may_turn=True, usual=units)


def _show(found: Decided, as_json: bool) -> None:
    from tilewright.designs.decision import decision_object

    if as_json:
        told = [{"topic": one.topic, "text": one.text, "commands": list(one.commands)} for one in found.statements]
        echo_json({**decision_object(found.decision), "statements": told})
        return
    echo_text(repr(found), nl=True)
    echo_paths(found.files, as_json)


@verb(
    """Choose one design of an explored space. Write what the choice costs, how certain it is, and what would change it.

    FOLDER is the folder of `tilewright explore`. The command prints the decision, and writes it to decision.md and
    decision.html in this folder. Each statement has the command that reproduces its numbers. The chosen design is also
    run in full, as by `tilewright explore --show`, and single changes and pairs of changes of its hardware are tried.

    Example: tilewright decide results/space/edge_sram --objective EDP
    """,
    run=_decided,
    show=_show,
)
def decide(
    folder: Annotated[FilePath, ARGUMENT],
    objective: Annotated[str, OneOf(DECISIONS), Help("Measure that the choice minimises.")] = "EDP",
    advice: Annotated[bool, Help("Also run the chosen design, and try single changes and pairs of changes.")] = True,
    bounds: Annotated[
        bool,
        Help(
            "Also search mappings of the chosen and the second-best design again, with lower bounds over all mappings."
        ),
    ] = False,
    space: Annotated[FilePath | None, Help("File of the space, if the folder does not name it.")] = None,
    network: Annotated[
        str | None, Help("Name of the network to decide for. The default is all networks of the space.")
    ] = None,
    write: Annotated[
        bool, Help("Write the decision into the folder. With --no-write, the command only prints it.")
    ] = True,
    jobs: int = 1,
    paper: Annotated[PaperWidth | None, Paper()] = None,
) -> Decided:
    """Decision for a design of an explored space: the design with the least value of an objective, over all networks.

    `folder` is the output folder of `tilewright.explore`, with a result for each design. The result has the decision
    and its statements; `str(result)` is the text of the decision. With `network`, the decision is for this network
    alone. With `advice`, the chosen design is run in full, and single changes and pairs of changes of its hardware are
    tried. With `bounds`, mappings of the chosen design and of the runner-up are searched with lower bounds. `space` is
    the file of the space; it is needed only if the folder does not name the file. If `write` is false, the page of the
    decision is not written, and the files of an earlier decision stay. With `paper` (`column` or `page`), the table of
    the decision is also written as CSV, LaTeX and Markdown.

    Raises InputError in three cases: the folder has no exploration, no design with results meets all constraints, or
    the objective cannot compare designs because the hardware file gives no energies.
    """
    return _decided(folder, objective, advice, bounds, space, network, write, jobs)


def _space_path(folder: Path, given: Path | None) -> Path:
    """Path of the space file for a folder. Raises InputError if the folder has no exploration, or if the file is not
    known.
    """
    from tilewright.designs.explore import SHARDS

    if not (folder / SHARDS).is_dir():
        found = said_of_folder(folder) if not folder.is_dir() or kind_of_folder(folder) else "has no designs"
        raise InputError([Problem(f"has no exploration of a space: it {found}", str(folder), allowed=_FOLDERS)])
    path = given or space_path_in(folder)
    message = missing_space_text(path)
    if path is None or message:
        remedy = "run `tilewright explore` again, or name the file with the option space"
        raise InputError([Problem(f"{message}: {remedy}", str(folder))])
    return path


_FOLDERS = "a folder that `tilewright explore SPACE -o FOLDER` wrote"


def _answer(space: "Space", path: Path, folder: Path, network: str | None) -> "Answer":
    """Answer to the exploration of a space (Pareto fronts, best designs, effects of the axes), from the shards that are
    up to date. If `network` is not None, the answer is for the network with this name alone. Raises InputError if no
    shard is up to date, or if the space has no such network.
    """
    from tilewright.designs.answer import answer_of
    from tilewright.designs.explore import gathered
    from tilewright.designs.known_gaps import with_known_gaps

    names = [one.name for one in space.networks]
    if network is not None and network not in names:
        nearest = nearest_name(network, names)
        message = "the space has no such network"
        raise InputError([Problem(message, path="network", value=network, allowed=", ".join(names), nearest=nearest)])
    exploration, missing = gathered(space, folder)
    exploration = with_known_gaps(exploration, folder)
    if exploration.table.empty and not exploration.excluded:
        message = f"no results are up to date: run `tilewright explore {path} -o {folder}` again"
        raise InputError([Problem(message, str(folder))])
    if missing:
        designs = count_of(exploration.missing, "design")
        echo_notices([f"no up-to-date results for {designs}: run `tilewright explore {path} -o {folder}` again"])
    return answer_of(exploration if network is None else exploration.on_network(network))


def _next(space: "Space", decision: "Decision", folder: Path, jobs: int) -> "Iterator[Statement]":
    """Statements on changes of the chosen hardware, from full runs of the chosen design."""
    from tilewright.cli.advise import run_and_changes
    from tilewright.cli.explore import shown_design
    from tilewright.designs.decision_trials import FACTOR, doubtful_statements, next_changes, next_statements

    _, *runs = shown_design(space, folder, decision.choice.name, decision.answer.exploration.networks)
    found = [(run, next_changes(space, *run_and_changes(run, FACTOR), jobs)) for run in runs]
    yield from next_statements(decision, found)
    yield from doubtful_statements(decision, space, found)


def _with_bounds(
    space: "Space", decision: "Decision", folder: Path, objective: str, jobs: int
) -> "tuple[Decision, tuple[Statement, ...]]":
    """Pair (decision, statements). The decision has the values from a search that also computes lower bounds. The
    statements say in which order this search puts the chosen design and the runner-up.
    """
    from tilewright.designs.decision_bounds import bounds_statement, reversed_statements

    assert decision.runner_up is not None
    if space.is_of_systems or not decision.depends_on_mappings:
        why = "designs have several cores" if space.is_of_systems else "the area does not depend on mappings"
        raise InputError([Problem(f"has no effect, because {why}", path="bounds")])
    names = decision.choice.name, decision.runner_up.design.name
    only = [one for one in space.networks if one.name in decision.answer.exploration.networks]
    runs = [_bounded_runs(space, only, folder, name, objective, jobs) for name in names]
    pairs = [(first[0], second[0]) for first, second in zip(*runs, strict=True)]
    found = _bounds_of(decision, names, runs)
    decision = replace(decision, searched_again=dict(zip(names, (found.choice, found.runner_up), strict=True)))
    order = bounds_statement(decision, found, pairs, space.options.objective)
    return decision, (order, *reversed_statements(decision, found))


Bounded = tuple[Path, float, float | None]
"""Triple (folder of a run, value of the objective for the run, lower bound of this objective or None). Both numbers are
computed from energies in pJ and latencies in cycles.
"""


def _bounded_runs(
    space: "Space", networks: "Sequence[Network]", folder: Path, name: str, objective: str, jobs: int
) -> list[Bounded]:
    """List of triples `Bounded`, one for each network: the run of the design `name` on this network. The search of the
    runs also computes lower bounds. The runs are written below `folder`.
    """
    from tilewright.base.yamlfile import yaml_text
    from tilewright.cli.map import map_workload
    from tilewright.designs.design_cost import NO_MAPPING
    from tilewright.designs.space import SystemOptions

    assert not isinstance(space.options, SystemOptions)
    options = replace(space.options, objective=objective)
    if options.of_bounds is None:
        options = replace(options, temporal_mapping_search_engine="best")
    index = next(index for index in range(len(space)) if space.design_name(index) == name)
    hardware = folder / BOUNDS / name / "hardware.yaml"
    hardware.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(hardware, yaml_text(space.named_hardware(index), allow_unicode=True))
    mapping = NO_MAPPING if space.mapping is None else space.mapping
    found = []
    for network in networks:
        run = folder / BOUNDS / name / network.name
        mapped = map_workload(
            network.file, hardware, mapping, options, output=run, network_options=network.options, jobs=jobs
        )
        bound = mapped.summary.get("certificate", {}).get("run", {}).get("lower_bound")
        value = OBJECTIVES_OF_SEARCH[objective].value(mapped.summary[ENERGY_PJ], mapped.summary[LATENCY_CYCLES])
        found.append((run, float(value), bound))
    return found


def _bounds_of(decision: "Decision", names: Sequence[str], runs: Sequence[Sequence[Bounded]]) -> "MappingBounds":
    """Objectives of two designs, and their lower bounds. All are sums over the networks, in the unit of the decision. A
    bound is None if a network has no bound.
    """
    from tilewright.designs.decision_bounds import MappingBounds

    units = [_unit(decision, name) for name in names]
    first, second = (sum(value for _, value, _ in own) * unit for own, unit in zip(runs, units, strict=True))
    of_first, of_second = (_sum_of_bounds(own, unit) for own, unit in zip(runs, units, strict=True))
    return MappingBounds(first, second, of_second, of_first)


def _sum_of_bounds(runs: Sequence[Bounded], unit: float) -> float | None:
    """Sum of the lower bounds of runs, multiplied by `unit`. None if a run has no bound."""
    known = [bound for _, _, bound in runs if bound is not None]
    return sum(known) * unit if len(known) == len(runs) else None


def _unit(decision: "Decision", name: str) -> float:
    """Factor that converts the latency of the design `name` from cycles to the unit of the decision. If clocks differ,
    the unit is seconds, and the factor is the duration of a cycle. Otherwise, the factor is 1.
    """
    energy, latency, _, _ = decision.front.measures
    if decision.objective == energy or latency != LATENCY_S:
        return 1.0
    rows = decision.front.compared
    row = rows[rows["design"] == name].iloc[0]
    return float(row[LATENCY_S] / row[LATENCY_CYCLES])
