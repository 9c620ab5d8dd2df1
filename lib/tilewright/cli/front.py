"""`tilewright front`: complete Pareto fronts of a design space.

Designs that differ only in unit energies, areas and word widths are evaluated together.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.files import FilePath, make_folder
from tilewright.base.artifacts.folder_lock import holding
from tilewright.base.errors import InputError, Problem
from tilewright.base.parameters import Limits
from tilewright.base.unused import refuse_unused, unused_in
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import echo_json, echo_paths, keep_font_cache_here, refuse_paper, repeated_options
from tilewright.cli.space_path import write_space_path
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, Tell, silent, verb
from tilewright.results.sheet import PaperWidth

if TYPE_CHECKING:
    import pandas

    from tilewright.designs.answer import Answer
    from tilewright.designs.front_search import CompleteFront
    from tilewright.designs.space import Space

PAGE, CERTIFICATE = "front.html", "certificate.parquet"


def _answer(
    space: FilePath,
    output: FilePath,
    jobs: int,
    part: int | None,
    gather: bool,
    strict: bool,
    paper: PaperWidth | None = None,
    tell: Tell = silent,
    show_progress: bool = False,
) -> "Answer | None":
    """Fronts and tables of the space, which are also written into the folder. None if only the costs of one part were
    computed.
    """
    refuse_paper(paper, ("a front", part is None))
    source, folder = Path(space), Path(output)
    read, notices = _read(source, part, strict)
    tell(unused_in(notices))
    with _lock(folder, part):
        found = _found(source, read, folder, jobs, part, gather, show_progress)
        return None if found is None else _written(found, source, folder, notices)


def _show(answer: "Answer | None", output: Path, as_json: bool) -> None:
    from tilewright.designs.tables import answer_text

    if answer is None:
        return
    if as_json:
        rows = answer.overall.members.to_dict("records")
        echo_json([{key: None if value != value else value for key, value in row.items()} for row in rows])
        return
    echo_text(answer_text(answer), nl=True)
    echo_paths([output / PAGE, output / CERTIFICATE], as_json)


@verb(
    """Find all designs of the file SPACE that are on a Pareto front, and write a certificate that the fronts are
    complete.

    The fronts and costs are bit by bit equal to those of `tilewright explore`, but the search takes less time. Designs
    that differ only in unit energies, areas and word widths form a family, and all designs of a family are evaluated
    together. Bottlenecks are reported only for designs on a front. Up-to-date costs are not computed again. `tilewright
    check-front` checks the certificate.

    Example: tilewright front config/space/edge_sram.yaml -o results/front/edge_sram --jobs 2
    """,
    run=_answer,
    show=_show,
)
def front(
    space: Annotated["FilePath", ARGUMENT],
    output: Annotated[FilePath, Help("Folder for costs, certificate, tables and the page.")],
    jobs: int = 1,
    part: Annotated[
        int | None,
        Limits(least=0),
        Help("Number of one part of the space: compute only its costs, as a job of a cluster."),
    ] = None,
    gather: Annotated[bool, Help("Compute no costs; find the fronts from the costs in the folder.")] = False,
    strict: bool = False,
    paper: Annotated[PaperWidth | None, Paper()] = None,
) -> "pandas.DataFrame":
    """Table of the designs of a space that are on the Pareto front over all networks.

    The tables and the certificate are written to the folder `output`. With `part`, only the costs of the part with this
    number are computed. With `gather`, the fronts are found from existing parts only. With `paper` (`column` or
    `page`), figures and tables for a paper are also written. The `attrs` of the table list unused input. With `strict`,
    input without effect is an error. Raises InputError with all errors of the space, the networks and the mapping.
    """
    import pandas

    from tilewright.designs.table_files import front_table

    answer = _answer(space, output, jobs, part, gather, strict, paper)
    return pandas.DataFrame() if answer is None else front_table(answer)


def _read(source: Path, part: int | None, strict: bool) -> "tuple[Space, list[str]]":
    """Pair (space, notices of unused input). With a `part`, notices of networks are left out. With `strict`, unused
    input is an error. Raises InputError for a wrong file.
    """
    from tilewright.designs.space_reader import read_space
    from tilewright.designs.unused_parts import unused_of_networks

    notices: list[str] = [*repeated_options()]
    space = read_space(source, notices)
    if part is None:
        notices += unused_of_networks(space)
    refuse_unused(notices, strict)
    return space, notices


def _lock(output: Path, part: int | None) -> AbstractContextManager[None]:
    """Lock of the folder `output`. With `part`, no lock is taken, because several jobs write their parts to the folder
    at the same time.
    """
    return holding(output) if part is None else nullcontext()


def _found(
    source: Path, space: "Space", output: Path, jobs: int, part: int | None, gather: bool, show_progress: bool
) -> "CompleteFront | None":
    from tilewright.designs import front_search
    from tilewright.designs.parts import check_space, parts_of

    check_space(space)
    parts = parts_of(space)
    problems = []
    if part is not None and gather:
        problems.append(Problem("cannot be combined with `gather`", path="part"))
    if part is not None and part >= len(parts):
        problems.append(Problem("no such part", path="part", value=str(part), allowed=f"0 to {len(parts) - 1}"))
    if problems:
        raise InputError(problems)
    try:
        if not gather:
            families = parts[-1].end if part is None else parts[part].end - parts[part].first
            with _progress(f"{space.name}", families, "families", show_progress) as advance:
                front_search.make_parts(source, space, output, jobs, advance, part)
        if part is not None:
            return None
        with _progress(f"{space.name}: designs on the fronts, one by one", None, "designs", show_progress) as advance:
            return front_search.front_of_folder(source, space, output, output / CERTIFICATE, jobs, advance)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(f"costs that are finished are kept in {output}") from error


def _progress(title: str, total: int | None, unit: str, shown: bool) -> Any:
    from tilewright.search.progress import search_progress

    return search_progress(total, title, shown, unit=unit, least=1)


def _written(found: "CompleteFront", source: Path, output: Path, notices: Sequence[str]) -> "Answer":
    """Fronts and tables, which are also written into the folder."""
    keep_font_cache_here()
    from tilewright.designs.answer import answer_of
    from tilewright.designs.figures import write_all_figures
    from tilewright.designs.page import write_page
    from tilewright.designs.table_files import write_front_tables

    make_folder(output)
    answer = answer_of(replace(found.exploration, notices=tuple(notices)))
    write_front_tables(answer, output)
    write_all_figures(answer, output)
    write_page(answer, output / PAGE)
    write_space_path(source, output)
    return answer
