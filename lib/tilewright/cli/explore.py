"""`tilewright explore`: costs of all designs of a space, and the Pareto front of these designs."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tilewright.base.artifacts.files import FilePath, make_folder
from tilewright.base.artifacts.folder_lock import holding
from tilewright.base.errors import InputError, Label, Problem, count_of, nearest_name
from tilewright.base.harmless import ended_lines
from tilewright.base.objectives import energy_notices
from tilewright.base.parameters import Limits, OneOf
from tilewright.base.steps import SHOWN_DESIGNS
from tilewright.base.unused import refuse_unused, unused_in, unused_option
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import (
    echo_json,
    echo_notices,
    echo_paths,
    keep_font_cache_here,
    refuse_paper,
    repeated_options,
)
from tilewright.cli.parameter_options import store_of
from tilewright.cli.space_path import write_space_path
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, Tell, silent, verb
from tilewright.results.sheet import PaperWidth
from tilewright.search.options import MACHINE_CLASSES, MACHINES_TEXT

if TYPE_CHECKING:
    import pandas

    from tilewright.designs.answer import Answer
    from tilewright.designs.design_cost import Sharing
    from tilewright.designs.exploration import Exploration
    from tilewright.designs.explore import SpaceSource
    from tilewright.designs.space import Space
    from tilewright.search.store import Store

PAGE, CSV = "explore.html", "space.csv"
SpaceDescription = FilePath | dict[str, Any]
"""Path of the file of a space, or its content."""


class Explored(NamedTuple):
    """Result of an exploration."""

    answer: "Answer | None" = None
    """Answer with the costs of all designs. None if the call evaluated only a shard, or made only the full run of a
    design.
    """
    shown: tuple[Path, ...] = ()
    """Paths that the full run of a single design wrote: the hardware file, and the folders of the runs."""


def _run(
    space: SpaceDescription,
    output: FilePath | None = None,
    jobs: int = 1,
    shard: int | None = None,
    gather: bool = False,
    show: str | None = None,
    store: "FilePath | Store | None" = None,
    strict: bool = False,
    error_bars: str | None = None,
    paper: PaperWidth | None = None,
    tell: Tell = silent,
    show_progress: bool = False,
) -> Explored:
    from tilewright.designs.design_cost import Sharing
    from tilewright.designs.space_reader import read_space
    from tilewright.designs.tried_values import number_cautions

    refuse_paper(paper, ("a front", shard is None and show is None))
    source = space if isinstance(space, dict) else Path(space)
    notices: list[str] = [*repeated_options()]
    read = read_space(source, notices)
    notices += _unused(read, jobs, shard, gather, show, error_bars)
    refuse_unused(notices, strict)
    tell(unused_in(notices))
    if shard is None and show is None:
        tell(list(number_cautions(read)))
    folder = None if output is None else Path(output)
    if show is not None:
        return Explored(shown=tuple(shown_design(read, folder, show)))
    if show_progress and shard is None and not gather:
        echo_text(_told_before(read, folder), nl=True)
    sharing = Sharing(store_of(store))
    run = (jobs, shard, gather, error_bars)
    answer = _explored(source, read, folder, run, sharing, (notices, strict), show_progress)
    if answer is not None:
        tell([notice for notice in unused_in(answer.exploration.notices) if notice not in notices])
    if str(sharing):
        tell([str(sharing)])
    return Explored(answer)


def _show(found: Explored, output: FilePath | None, paper: PaperWidth | None, as_json: bool) -> None:
    if found.shown:
        echo_paths(found.shown, as_json)
    if found.answer is None:
        return
    if as_json:
        rows = found.answer.overall.members.to_dict("records")
        echo_json([{key: None if value != value else value for key, value in row.items()} for row in rows])
        return
    from tilewright.designs.tables import answer_text

    echo_text(answer_text(found.answer), nl=True)
    if output:
        echo(f"{Path(output) / PAGE}  {Path(output) / CSV}")
        drawn = (f"{kind}-*-{paper}.pdf" for kind in ("front", "effect"))
        patterns = [one for one in (f"front*-{paper}.tex", *drawn) if paper and any(Path(output).glob(one))]
        if patterns:
            echo(f"for a paper: {'  '.join(str(Path(output) / one) for one in patterns)}")


@verb(
    """Evaluate every design of the file SPACE on the networks of this file, and mark the designs on the Pareto front.

    The costs of a design are bit by bit equal to those of `tilewright map` (one core) or `tilewright schedule` (several
    cores). Designs with up-to-date results are not evaluated again, so an interrupted exploration continues with the
    other designs. Results are in files for groups of designs, called shards. If a design is not a valid accelerator, or
    if a layer has no mapping on it, the table has the reason.

    Example: tilewright explore config/space/edge_sram.yaml -o results/space/edge_sram --jobs 2
    """,
    run=_run,
    show=_show,
    order="space output store shard gather show",
)
def explore(
    space: Annotated[SpaceDescription, ARGUMENT],
    output: Annotated[FilePath | None, Help("Folder for shards, tables, figures and the page.")] = None,
    jobs: int = 1,
    shard: Annotated[
        int | None,
        Limits(least=0),
        Help("Number of the only shard to evaluate, for jobs of a cluster. No fronts are computed."),
    ] = None,
    gather: Annotated[bool, Help("Evaluate no shard; compute the fronts from the existing shards.")] = False,
    show: Annotated[
        str | None, Help("Name of one design: only its full run and report are made.", metavar="DESIGN")
    ] = None,
    store: "FilePath | Store | None" = None,
    strict: bool = False,
    error_bars: Annotated[
        str | None,
        OneOf(MACHINE_CLASSES),
        Help(
            "Class of machines to which all designs belong. Latencies then get error bars from measured errors."
            f" {MACHINES_TEXT}"
        ),
    ] = None,
    paper: Annotated[PaperWidth | None, Paper(("output",))] = None,
) -> "pandas.DataFrame":
    """Table with the costs of every design of a space: one row for each design and network.

    The column `pareto` says whether the design is on the Pareto front. `space` is a file, or the content of a file as a
    dict. `output` is a folder for shards, tables, figures and a page. With `shard`, only the shard with this number is
    evaluated. With `gather`, the table is made from existing shards only. With `show`, only the full run of the design
    with this name is made. With `paper` (`column` or `page`), figures for a paper are also drawn. With
    `error_bars`, a class of machines, the table also has the ends of an error bar on each latency. For designs with
    several cores, `store` keeps the mappings of tiles for later designs. The `attrs` of the table list unused input.
    Raises InputError with all errors of the space, the networks and the mapping, and with `strict` for input without
    effect.
    """
    import pandas

    from tilewright.designs.table_files import space_table

    found = _run(space, output, jobs, shard, gather, show, store, strict, error_bars, paper)
    if show is not None:
        return pandas.DataFrame({"file": list(found.shown)})
    return pandas.DataFrame() if found.answer is None else space_table(found.answer)


def _unused(
    space: "Space", jobs: int, shard: int | None, gather: bool, show: str | None, error_bars: str | None
) -> list[str]:
    """Notices of options without effect, and of unused parts of the networks. If `show` or `shard` is given, the
    networks are not checked for unused parts.
    """
    from tilewright.designs.unused_parts import unused_of_networks

    if show is not None:
        given = {"jobs": jobs != 1, "shard": shard is not None, "gather": gather, "error_bars": bool(error_bars)}
        return [unused_option(name, "has no effect with `show`") for name, is_given in given.items() if is_given]
    if shard is not None:
        return [unused_option("error_bars", "has no effect with `shard`", error_bars)] if error_bars else []
    with_jobs = gather and jobs != 1
    options = (
        [unused_option("jobs", "has no effect with `gather`, which evaluates no shard", jobs)] if with_jobs else []
    )
    return [*options, *unused_of_networks(space)]


def _explored(
    source: "SpaceSource",
    space: "Space",
    output: Path | None,
    run: tuple[int, int | None, bool, str | None],
    sharing: "Sharing",
    told: tuple[Sequence[str], bool],
    show_progress: bool = False,
) -> "Answer | None":
    """Fronts and tables of the space. If `output` is given, they are also written to it. None if only a shard is
    evaluated. `run` is (jobs, shard, gather, error_bars), and `told` is (notices, strict).
    """
    _, shard, gather, error_bars = run
    _check_shard(space, output, shard, gather)
    if error_bars and shard is None:
        from tilewright.designs.error_bars import check_space

        check_space(space, error_bars)
    # Jobs that evaluate one shard each run in parallel in one folder, so they do not lock it.
    with holding(output) if output is not None and shard is None else nullcontext():
        return _answered(source, space, output, run, sharing, told, show_progress)


def _answered(
    source: "SpaceSource",
    space: "Space",
    output: Path | None,
    run: tuple[int, int | None, bool, str | None],
    sharing: "Sharing",
    told: tuple[Sequence[str], bool],
    show_progress: bool,
) -> "Answer | None":
    jobs, shard, gather, error_bars = run
    from tilewright.designs import explore as engine
    from tilewright.designs.parts import shards_of

    with _progress(space, shard, show_progress and not gather) as advance:
        if output is None:
            found = engine.explored(source, space, jobs, advance, sharing)
            return _annotated(space, _noted(space, found, *told), error_bars)
        try:
            if not gather:
                engine.complete(source, space, output, jobs, advance, shard, sharing)
        except KeyboardInterrupt as error:
            raise InterruptedRunError(_kept_text(space, output, show_progress)) from error
    if shard is not None:
        return None
    exploration, missing = engine.gathered(space, output)
    if missing:
        names = ", ".join(str(one.number) for one in missing[:10]) + (", ..." if len(missing) > 10 else "")
        echo_notices([f"{len(missing)} of {len(shards_of(space))} shards are incomplete or out of date: {names}"])
    answer = _annotated(space, _noted(space, exploration, *told), error_bars)
    _write(answer, output)
    if isinstance(source, Path):
        write_space_path(source, output)
    return answer


def _annotated(space: "Space", found: "Exploration", error_bars: str | None) -> "Answer":
    """Answer to an exploration, with sentences on the gaps of mappings, on axes without a cost, on the base of the
    space, and on proposed values. If `error_bars` is a class of machines, the answer also has error bars.
    """
    from tilewright.designs.answer import answer_of
    from tilewright.designs.base_design import with_base_design
    from tilewright.designs.free_axes import with_free_axes
    from tilewright.designs.mapping_gaps import with_mapping_gaps
    from tilewright.designs.proposed_values import with_proposed_values

    answer = with_free_axes(space, with_mapping_gaps(space, answer_of(found)))
    answer = with_proposed_values(space, with_base_design(space, answer))
    if not error_bars:
        return answer
    from tilewright.designs.error_bars import with_error_bars

    return with_error_bars(answer, error_bars)


def _noted(space: "Space", found: "Exploration", notices: Sequence[str], strict: bool) -> "Exploration":
    """Exploration with all its notices. If the objective cannot compare mappings, because the hardware has no energies,
    a notice says so; with `strict`, InputError is raised instead.
    """
    without_energy = energy_notices(space.options.objective, found.energies_pj)
    refuse_unused(without_energy, strict)
    return replace(found, notices=(*notices, *without_energy))


def _kept_text(space: "Space", output: Path, shown: bool) -> str:
    """Sentence on the designs that an interrupted exploration keeps. If `shown` is true, the function first prints the
    best of these designs. It computes no fronts, because this takes longer than a user waits after Ctrl-C.
    """
    from tilewright.designs.explore import SHARDS, gathered

    exploration, _ = gathered(space, output)
    done = len(space) - exploration.missing
    best = exploration.best_designs() if shown else []
    if best:
        echo_text(ended_lines([f"best of {count_of(done, 'design')} so far:", *best], "  "), nl=False)
    return (
        f"the results of {done:,} of {count_of(len(space), 'design')} are kept in {output / SHARDS};"
        " the same command continues with the other designs; with the option gather, it writes the answer for the"
        " finished designs"
    )


def _check_shard(space: "Space", output: Path | None, shard: int | None, gather: bool) -> None:
    """Raise InputError for options that cannot be combined, and for an unknown shard."""
    from tilewright.designs.parts import shards_of

    problems = []
    if (shard is not None or gather) and output is None:
        problems.append(Problem("is needed with `shard` and `gather`", path="output"))
    if shard is not None and gather:
        problems.append(Problem("cannot be combined with `gather`", path="shard"))
    count = len(shards_of(space))
    if shard is not None and shard >= count:
        problems.append(Problem("no such shard", path="shard", value=str(shard), allowed=f"0 to {count - 1}"))
    if problems:
        raise InputError(problems)


def shown_design(space: "Space", output: Path | None, name: str, networks: Sequence[str] | None = None) -> list[Path]:
    """Write the hardware file of a design. Then run the design on every network, check the runs, and draw them. Returns
    the paths of the hardware file and of the folders of the runs. If `networks` is not None, only the networks with
    these names are run.
    """

    from tilewright.cli.shown_design import index_of_design, run_design, write_hardware

    if output is None:
        raise InputError([Problem("is needed with `show`, to make the run of a design", path="output")])
    index = index_of_design(space, name)
    if index is None:
        nearest = nearest_name(name, [space.design_name(index) for index in range(len(space))])
        raise InputError([Problem("no such design", path="show", value=name, nearest=nearest)])
    design = space.design(index)
    if design.excluded_by and space.block_size > 1:
        raise InputError(
            [Problem(f"does not meet {design.excluded_by}, so no plan is searched for it", path=Label(name))]
        )
    if design.problem:
        raise InputError([Problem(design.problem, path=Label(name))])
    folder = output / SHOWN_DESIGNS / name
    made = [write_hardware(space, index, folder)]
    for network in space.networks:
        if networks is not None and network.name not in networks:
            continue
        run = folder / network.name
        run_design(space, index, network, made[0], run)
        made.append(run)
    return made


def _told_before(space: "Space", output: Path | None) -> str:
    """Text printed before the evaluation: the number of designs, and the number of shards to evaluate."""
    from tilewright.designs.explore import kept_count, shard_states
    from tilewright.designs.parts import ShardDigests, shards_of

    allowed, number = space.count_allowed(), len(shards_of(space))
    left = "" if allowed == len(space) else f", of which {allowed:,} meet the constraints checked before evaluation"
    networks = ", ".join(network.name for network in space.networks)
    missing, kept = number, ""
    if output is not None:
        states = shard_states(space, ShardDigests(space), output)
        missing, done = len(states.missing), kept_count(space, states, output)
        kept = f"; {count_of(done, 'design')} already evaluated by an interrupted exploration" if done else ""
    designs = f"{count_of(len(space), 'design')} on {networks}{left}"
    return f"{space.name}: {designs}; {missing:,} of {count_of(number, 'shard')} to evaluate{kept}"


def _progress(space: "Space", shard: int | None, shown: bool) -> Any:
    """Progress bar that counts the designs that meet the constraints checked before evaluation."""
    from tilewright.designs.parts import shards_of
    from tilewright.search.progress import search_progress

    if shard is None:
        total = space.count_allowed()
    else:
        part = shards_of(space)[shard]
        total = space.allowed_in(range(part.first, part.end))
    return search_progress(total, space.name, shown, unit="designs", least=1)


def _write(answer: "Answer", output: Path) -> None:
    """Write the tables, the figures and the page."""
    keep_font_cache_here()
    from tilewright.designs.figures import write_all_figures
    from tilewright.designs.page import write_page
    from tilewright.designs.table_files import write_tables

    make_folder(output)
    write_tables(answer, output)
    write_all_figures(answer, output)
    write_page(answer, output / PAGE)
