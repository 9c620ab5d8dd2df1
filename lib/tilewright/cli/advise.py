"""`tilewright advise`: changes that would improve a run on one or several cores, and hardware that can be removed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.envelope import is_artifact, read_artifact
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import InputError, Problem, Problems, nearest_name
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.steps import ALLOCATION, CN_GRAPH, COSTS, SCHEDULE, SUMMARY, cost_table
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD, DescribedRun, core_in
from tilewright.cli.explained_run import Given, explained_run, not_searchable, paths_of_inputs
from tilewright.cli.options import (
    FILE,
    echo_json,
    echo_paths,
    network_keywords,
)
from tilewright.cli.runs import existing_run, is_multi_run
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.results.sheet import PaperWidth, sheet_inches
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.designs.advice import Advices
    from tilewright.designs.changes import FileChange, MappingChange
    from tilewright.designs.core_trials import ExplainedRun
    from tilewright.designs.space import SystemOptions
    from tilewright.designs.system_trials import ExplainedSystemRun
    from tilewright.designs.trials import TrialEngine
    from tilewright.multicore.scheduling.options import ScheduleSettings
    from tilewright.search.options import CnSearchOptions


STEM = "advice"
"""Name of the written files without their suffix."""
FACTORS = "a number above 1 and at most 1024, such as 2, 1.5 or 4/3"
LARGEST_FACTOR = 1024
_FACTOR = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}|/0*[1-9][0-9]{0,8})?")


def _advised(
    run: FilePath,
    factor: float | str,
    search: bool,
    hardware: FilePath | None,
    workload: FilePath | None,
    mapping: FilePath | None,
    write: tuple[int, FilePath] | None,
    jobs: int,
    output: FilePath | None,
    network_options: NetworkOptions | None,
    mapping_changes: bool,
    pairs: bool,
    together: str,
    show_progress: bool = False,
) -> "Advices":
    """Advice on a run: the gain of each change that was tried. Files are written only on request: the changed input
    file if `write` is given, the table and the JSON file if `output` is given.
    """
    from tilewright.designs.trials import advices_of, named_advices, with_pairs
    from tilewright.search.progress import search_progress

    run, by, network_options = Path(run), _factor(str(factor)), network_options or NetworkOptions()
    named = {HARDWARE: hardware, WORKLOAD: workload, MAPPING: mapping}
    given = {kind: None if file is None else Path(file) for kind, file in named.items()}
    if pairs and together:
        raise InputError([Problem("has no effect, because `together` names the changes to try", path="pairs")])
    explained, changes, others = _explained_with(run, given, network_options, by, mapping_changes and not together)
    chosen = _named(changes, together)
    count = 1 if chosen else len(changes) + others
    if write is not None and not 1 <= write[0] <= count:
        raise InputError(
            [Problem("there is no change with this number", path="write", value=str(write[0]), allowed=f"1 to {count}")]
        )
    with search_progress(count + 1, run.name, show_progress, unit="changes", least=1) as advance:
        if chosen:
            found = named_advices(explained, chosen, search=search)
        else:
            found = advices_of(explained, changes, search=search, jobs=jobs, advance=advance)
            found = with_pairs(explained, found, jobs) if pairs else found
    if write is not None:
        write_changed(found, write[0], Path(write[1]))
    if output is not None:
        _write(found, Path(output))
    return found


def _show(found: "Advices", output: Path | None, write: tuple[int, Path] | None, as_json: bool) -> None:
    from tilewright.designs.advice import advices_object
    from tilewright.designs.advice_text import advice_text

    if as_json:
        echo_json(advices_object(found))
        return
    echo_text(advice_text(found))
    ends = ("csv", "json", *(() if sheet_inches() is None else ("md", "tex")))
    written = [output / f"{STEM}.{end}" for end in ends] if output else []
    if written or write:
        echo_paths([*written, *([write[1]] if write else [])], as_json)


@verb(
    """List changes that would improve the run in the folder RUN, each with its exact gain.

    A change sets one number of the hardware file, or one spatial mapping of the mapping file. The numbers are port
    widths, memory sizes, array sides, energies, static powers, values of the keys for waiting, and values of plug-in
    keys. Clocks, areas, access times and caches are not changed. For an SRAM with costs from the library, the other
    type of cells is also tried. The gain is computed for the mappings of the run, and for newly searched mappings. A
    change of a spatial mapping removes one loop, or puts another loop in its place. A second list has the numbers that
    can be reduced while energy and latency do not increase.

    --write writes a copy of the input file with one change, which is given by its number in the list. For a run on
    several cores, widths of links are changed too. The gain is then computed twice: with the tiles and the allocation
    of the run but new cost tables, and with a new search. --write then writes the file of the accelerator or of a core.

    Example: tilewright advise results/single/resnet18-tpu_like --write 1 wider.yaml
    """,
    run=_advised,
    show=_show,
    order="run factor search mapping_changes",
)
@network_keywords
def advise(
    run: Annotated[FilePath, ARGUMENT],
    factor: Annotated[float | str, Help("Factor above 1 by which a number is multiplied or divided.", type=str)] = 2,
    search: Annotated[bool, Help("Also search new mappings for each change of the hardware.")] = True,
    hardware: Annotated[FilePath | None, Help("Hardware file of the run; only needed if it is not found.")] = None,
    workload: Annotated[FilePath | None, Help("Workload of the run; only needed if it is not found.")] = None,
    mapping: Annotated[FilePath | None, Help("Mapping of the run; only needed if it is not found.")] = None,
    write: Annotated[
        tuple[int, FilePath] | None,
        Help(
            "Number of a change in the list, and the path of the input file to write with this change.",
            metavar="NUMBER FILE",
            type=(int, FILE),
        ),
    ] = None,
    jobs: int = 1,
    output: Annotated[FilePath | None, Help(f"Folder for {STEM}.csv and {STEM}.json.")] = None,
    network_options: NetworkOptions | None = None,
    mapping_changes: Annotated[
        bool,
        Help(
            "Also change spatial mappings of the mapping file. Each such change needs a new search of mappings, even"
            " with --no-search; --no-mapping-changes avoids these searches."
        ),
    ] = True,
    pairs: Annotated[
        bool,
        Help("Also try pairs of changes of sizes, widths and array sides. The mappings of the run are kept."),
    ] = False,
    together: Annotated[
        str,
        Help("Keys of changes, from the table of changes. Only these changes are made, all at once.", metavar="KEYS"),
    ] = "",
    paper: Annotated[PaperWidth | None, Paper(("output",))] = None,
) -> "Advices":
    """Gain of each change of a run, the best change first, and the hardware numbers that can be reduced without loss.

    Each change sets one number of the hardware file. Its effect is computed for the mappings of the run and, with
    `search`, for newly searched mappings. With `mapping_changes`, spatial mappings of the mapping file are changed too,
    one at a time; for each of these changes, mappings are searched again. With `pairs`, pairs of changes of memory
    sizes, port widths and array sides are also tried. A pair counts only if it saves more than each of its two changes
    alone; the result has the pair that saves most. `together` has keys of changes, separated by commas: only these
    changes are tried, all at once.

    `run` is the folder of the run. `hardware`, `workload` and `mapping` are its inputs; if an input is not given, the
    function looks for it in the same places as the command. `write` is a pair: the number of a change in the list, and
    the path of the changed input file to write. `output` is a folder for a table and a JSON file. With `paper`
    (`column` or `page`), the table is also written as LaTeX and Markdown. Energies are in pJ. Raises ArtifactError for
    a folder without a run, and InputError for inputs that are not those of the run.
    """
    given = (run, factor, search, hardware, workload, mapping, write)
    return _advised(*given, jobs, output, network_options, mapping_changes, pairs, together)


def run_and_changes(run: Path, factor: float | str) -> "tuple[TrialEngine, tuple[FileChange, ...]]":
    """Pair (run with its inputs, changes of its hardware). Each change multiplies or divides one number by `factor`."""
    given = dict.fromkeys((HARDWARE, WORKLOAD, MAPPING))
    return _explained_with(run, given, NetworkOptions(), _factor(str(factor)), False)[:2]


def _explained_with(
    run: Path, given: dict[str, Path | None], network_options: NetworkOptions, by: Fraction, mapping_changes: bool
) -> "tuple[TrialEngine, tuple[FileChange, ...], int]":
    """Triple (run with its inputs, changes of its hardware, number of possible changes of its mapping file). Each
    change of the hardware multiplies or divides one number by the factor `by`. The number of possible changes is 0 if
    `mapping_changes` is false, or if the run is on several cores.
    """
    if is_multi_run(existing_run(run)):
        return *explained_system_run(run, given, network_options, by), 0
    explained, changes = _explained_run(run, given, network_options, by, mapping_changes)
    return explained, changes, len(explained.others)


def _named(changes: "Sequence[FileChange]", together: str) -> "tuple[FileChange, ...]":
    """Changes selected by the keys in a text; () if the text is empty.

    Only changes that increase a number, such as a size or width, can be selected. Raises InputError for unknown keys
    and for keys that are given twice.
    """
    if not together:
        return ()
    known = {one.key: one for one in reversed(changes) if one.more}  # of an attribute's two changes, the increase
    problems, keys = Problems(), [key.strip() for key in together.split(",")]
    for key in dict.fromkeys(keys):
        if key not in known:
            nearest = nearest_name(key, [*known])
            problems.found.append(Problem("no such change", path="together", value=key, nearest=nearest))
    for key in sorted({key for key in keys if key in known and keys.count(key) > 1}):
        problems.found.append(Problem("is given twice", path="together", value=key))
    problems.finish()
    return tuple(known[key] for key in keys)


def _explained_run(
    run: Path, given: dict[str, Path | None], network_options: NetworkOptions, by: Fraction, mapping_changes: bool
) -> "tuple[ExplainedRun, tuple[FileChange, ...]]":
    """Pair (run on one core with its inputs, changes of its hardware). Each change multiplies or divides one number of
    the hardware file by `by`. With `mapping_changes`, the run also contains the changes of its mapping file.
    """
    from tilewright.designs.changes import possible_changes
    from tilewright.hardware.whole_text import hardware_document

    explained, paths = explained_run(run, given, network_options)
    if mapping_changes:
        explained = replace(explained, others=_mapping_changes(explained, paths))
    return explained, possible_changes(hardware_document(paths[HARDWARE]), by)


def _mapping_changes(explained: "ExplainedRun", paths: dict[str, Path]) -> "tuple[MappingChange, ...]":
    from tilewright.base.yamlfile import load_yaml
    from tilewright.designs.changes import mapping_changes

    path = paths[MAPPING]
    document = None if is_artifact(path) else load_yaml(path)
    return mapping_changes(explained.mapping, core_in(paths[HARDWARE]), explained.network, document)


def write_changed(found: "Advices", number: int, path: Path) -> None:
    """Write a copy of an input file to `path`, with change `number` (1-based) of the list of advice. Raises InputError
    if the change concerns several files, or if the path of its input file is not known.
    """
    from tilewright.hardware.text_edits import changed_text
    from tilewright.hardware.whole_text import hardware_text

    change = found.found[number - 1].change
    if not change.file and change.parts:
        files = ", ".join(dict.fromkeys(part.file for part in change.parts))
        message = f"changes several files: {files}; write the changes of each file with a separate command"
        raise InputError([Problem(message, path="write", value=str(number))])
    if not change.file:
        message = "changes a mapping whose file was not found: name the file with the option mapping"
        raise InputError([Problem(message, path="write", value=str(number))])
    write_atomically(path, changed_text(hardware_text(Path(change.file)), change.settings))


def _write(found: "Advices", folder: Path) -> None:
    from tilewright.designs.advice import advice_table, advices_object, paper_advice
    from tilewright.results.paper_tables import write_table

    make_folder(folder)
    write_table(advice_table(found), folder / f"{STEM}.csv", for_paper=paper_advice(found))
    write_atomically(folder / f"{STEM}.json", sealed_document(document_text(advices_object(found))))


def _factor(text: str) -> Fraction:
    """Factor by which numbers of the hardware are multiplied or divided, from a text. Raises InputError if the text is
    not a number above 1 and at most LARGEST_FACTOR.
    """
    if _FACTOR.fullmatch(text):
        factor = Fraction(text)
        if 1 < factor <= LARGEST_FACTOR:
            return factor
    raise InputError([Problem("not a factor", path="factor", value=text[:40], allowed=FACTORS)])


Document = Mapping[str, Any]


def explained_system_run(
    folder: Path, given: Given, network_options: NetworkOptions, by: Fraction
) -> "tuple[ExplainedSystemRun, tuple[FileChange, ...]]":
    """Pair (run on several cores with its inputs, changes of its hardware). Each change multiplies or divides one
    number of the accelerator file or of a core file by `by`.

    Raises InputError if the files are not those of the run, or if a pipeline or a schedule model of the user made the
    run.
    """
    from tilewright.designs.changes import system_changes
    from tilewright.designs.held_mappings import Outcome
    from tilewright.designs.space_reader import system_base
    from tilewright.designs.system_trials import ExplainedSystemRun
    from tilewright.hardware.whole_text import hardware_document
    from tilewright.multicore.scheduling.options import CAUSAL, ScheduleSettings
    from tilewright.multicore.scheduling.result import read_schedule
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.inputs import read_inputs

    artifact = read_schedule(folder / SCHEDULE)
    summary = read_artifact(folder / SUMMARY).payload
    run = DescribedRun.of(folder, artifact.provenance, summary)
    paths = paths_of_inputs(run, given, network_options, is_system=True)
    settings = ScheduleSettings.of(artifact.provenance["options"])
    if settings.schedule_model != CAUSAL or "pipeline" in artifact.provenance["options"]:
        message = not_searchable("a pipeline or a schedule model")
        raise InputError([Problem(message, str(folder))])
    problems = Problems()
    document = hardware_document(paths[HARDWARE])
    base = system_base(document, {}, problems)
    problems.finish()
    assert base is not None
    described = Descriptions(base.document.data, paths[WORKLOAD], paths[MAPPING], network_options)
    costed = read_inputs(described, folder, folder / COSTS, settings.operands_to_prefetch)
    search = _search_options(folder, tuple(costed.costs))
    explained = ExplainedSystemRun(
        name=folder.name,
        hardware=base.document.data,
        costed=costed,
        allocation=artifact.schedule.allocation,
        now=Outcome(summary[ENERGY_PJ], summary[LATENCY_CYCLES]),
        objective=summary["objective"],
        search=search,
        settings=settings,
        options=_system_options(folder, search, settings),
    )
    return explained, system_changes(document, base, by)


def _search_options(folder: Path, core_files: tuple[str, ...]) -> "CnSearchOptions":
    """Search options with which the cost tables were made. Raises InputError if two tables have different options, or
    if a pipeline of the user made a table.
    """
    from tilewright.base.parameters import made_of
    from tilewright.search.options import CnSearchOptions

    stated = [read_artifact(cost_table(folder / COSTS, name)).provenance["options"] for name in core_files]
    if any(one != stated[0] for one in stated) or "pipeline" in stated[0]:
        raise InputError([Problem(not_searchable("a pipeline"), str(folder / COSTS))])
    return made_of(CnSearchOptions, stated[0])


def _system_options(folder: Path, search: "CnSearchOptions", settings: "ScheduleSettings") -> "SystemOptions | None":
    """Options for new searches of costs and allocation; None if `tilewright allocate` did not search the allocation."""
    from tilewright.base.parameters import parameters_of
    from tilewright.designs.space import SystemOptions
    from tilewright.multicore.allocation.options import AllocationParameters
    from tilewright.multicore.nodes.tiling_options import TilingOptions

    if not (folder / ALLOCATION).is_file():
        return None
    stated: dict[str, Any] = {}
    for kind, file in ((TilingOptions, folder / CN_GRAPH), (AllocationParameters, folder / ALLOCATION)):
        options: Document = read_artifact(file).provenance["options"]
        stated |= {one.name: options[one.name] for one in parameters_of(kind) if one.name in options}
    return SystemOptions(**{**settings.as_dict(), **stated, **search.as_dict()})
