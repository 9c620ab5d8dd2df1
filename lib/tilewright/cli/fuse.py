"""`tilewright fuse`: joint search for stacks, tiles, layer splits between cores, allocation and scheduling rules."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.envelope import write_document
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.folder_lock import holding
from tilewright.base.errors import InputError, Problems, Unused, count_of
from tilewright.base.harmless import ended_lines
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.steps import COSTS, FIXED_MAPPING, FUSION, FUSION_PAGE, FUSION_PLANS, ISLANDS
from tilewright.base.units import energy_text
from tilewright.base.unused import refuse_unused, to_tell, unused_in, unused_option
from tilewright.cli.csv_text import csv_text
from tilewright.cli.main import InterruptedRunError, begin_cpu_s
from tilewright.cli.options import UNCOSTED, echo_json, network_keywords
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.planned import SCHEMA
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import NETWORK_FILE, SYSTEM_FILE, Help, Tell, silent, verb
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.configuration.island_parts import ANSWER, OPENING
from tilewright.search.options import CnSearchOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import SystemProblem
    from tilewright.plans.answer import Fusion
    from tilewright.plans.call import FusionCall
    from tilewright.plans.evaluate import PlanOutcome
    from tilewright.plans.trials import Progress

BLANK: tuple[dict[str, str], ...] = ({"name": "default"},)
"""Content of a mapping file that fixes no decision: a layer may run on every core that supports it."""
TOLERATED_S = 1.0
"""Time in seconds by which the search may exceed its time budget without a note."""
START_HELP = (
    f"Folder of an earlier search, or its {FUSION}. Its plan is tried first, so the result is not worse than this plan."
)
PART_HELP = (
    "Name of one part of a search with islands: make only this part, as a job of a cluster. The first part is"
    f" `{OPENING}`. Then each round of each island is a part (ROUND.ISLAND, such as 2.1). The last part is `{ANSWER}`."
    f" The parts keep their states in the folder `{ISLANDS}` of the output."
)
_MOST_CUTS_SHOWN, _MOST_RELOADS_SHOWN = 8, 3


def _fused(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource | None",
    options: Given[FusionOptions],
    start: FilePath | None,
    output: FilePath | None,
    run: bool,
    page: bool,
    part: str | None,
    network_options: NetworkOptions | None,
    strict: bool,
    tell: Tell = silent,
    show_progress: bool = False,
) -> "tuple[Fusion, float, float]":
    """Triple (result of the search, run time in seconds, CPU seconds). If the folder `output` is given, the result is
    also written there. Raises InputError with all errors of the input.
    """
    from tilewright.cli.island_files import part_problems
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.preflight.network import read_checked
    from tilewright.plans.budget import CpuMeter
    from tilewright.plans.call import FusionCall, fusion_space
    from tilewright.plans.space import parts_left_out
    from tilewright.plans.start import read_start, start_task

    start_s, meter = time.monotonic(), CpuMeter(begin_cpu_s())
    source: Any = list(BLANK) if mapping is None else mapping
    given = Descriptions(hardware, workload, source, network_options or NetworkOptions())
    folder = None if output is None else Path(output)
    told = Problems()
    chosen = told.attempt(options)
    # If some options are wrong, the correct ones still allow a check of the files.
    sound = chosen or options.sound(("layer_stacks", "stack_cutoffs", "operands_to_prefetch"))
    cutting = None if sound is None else told.attempt(_cutting, sound)
    prefetch = () if sound is None else sound.operands_to_prefetch or ()
    problem = told.attempt(read_checked, given, cutting, prefetch)
    checked = None if problem is None else told.attempt(_checked, problem, cutting, prefetch)
    stacks, unused = checked or ((), [])
    unused += options.unused()
    for name, is_given in (("run", run), ("page", page)):
        if not (is_given or output):
            unused.append(unused_option(name, "has no effect without `output`, because nothing is written", False))
    if problem is not None:
        problem = replace(problem, notices=(*problem.notices, *unused, *parts_left_out(problem)))
        if strict:
            told.attempt(problem.check_complete)
            told.attempt(refuse_unused, problem.notices)
    earlier = None if start is None else told.attempt(read_start, Path(start), SCHEMA)
    told.found += part_problems(part, chosen, output is not None) if chosen else []
    told.finish()
    assert chosen is not None
    assert problem is not None
    space = fusion_space(problem, chosen, stacks or None)
    task = None if earlier is None else start_task(earlier, str(start), space, problem.accelerator)
    tell(to_tell(problem.notices, strict))
    with _progress(problem, chosen, show_progress) as progress:
        call = FusionCall(problem, chosen, stacks or None, progress, start_s=start_s, start=task, meter=meter)
        found = _searched(call, given, folder, part, run, page)
    if part in (None, ANSWER):
        tell(found.unused)  # known only after the search, so `strict` cannot refuse them before it
    return found, time.monotonic() - start_s, meter.spent_s


def _searched(
    call: "FusionCall", given: "Descriptions", folder: Path | None, part: str | None, run: bool, page: bool
) -> "Fusion":
    """Result of the whole search, or of the part `part`. If `folder` is given, the result is also written to it."""
    from tilewright.cli.island_files import IslandFiles

    if folder is None:
        return call.answer()
    call = replace(call, makes_files=run, makes_page=page)
    make_folder(folder)  # a folder that cannot be written is an error before the search, not after
    files = IslandFiles(folder, call)
    if part not in (None, ANSWER):  # parts run at the same time in one folder, so they do not lock it
        return files.make(part)
    with holding(folder):
        found = call.answer() if part is None else files.make(part)
        files.remove_others(part)
        write_fusion(folder, given, found, run, page)
    return found


def _show(
    made: "tuple[Fusion, float, float]", output: Path | None, part: str | None, verbose: bool, as_json: bool
) -> None:
    found, *used = made
    for over in _over_budget(found, *used):
        echo(over, err=True)
    if as_json:
        echo_json(found.document)
    elif part not in (None, ANSWER):
        search = found.found
        echo_text(
            f"part {part} of the search: evaluated {count_of(len(search.tried), 'plan')} and"
            f" {count_of(search.segments, 'part')} of the network, in"
            f" {count_of(search.evaluations, 'schedule')}; best plan so far: {found.latency_cycles:,} cycles,"
            f" {energy_text(found.energy_pj)}\n"
        )
    else:
        echo_text(_text(found.document, verbose or not output))
        if output:
            files = (FUSION, FIXED_MAPPING, *([FUSION_PAGE] if (output / FUSION_PAGE).is_file() else []))
            echo("  ".join(str(output / file) for file in files))
    if found.is_interrupted:
        kept = f"; the best is in {output}" if output else ""
        raise InterruptedRunError(f"evaluated: {count_of(len(found.found.tried), 'plan')}{kept}")


@verb(
    """Find the best way to run a network on several cores: stacks of fused layers, tiles, splits of layers between
    cores, allocation to cores, and scheduling rules.

    Example: tilewright fuse --hardware config/hardware/multi/quad_core.yaml --workload config/workload/resnet18.onnx
    -o out
    """,
    run=_fused,
    show=_show,
    order="hardware workload mapping start output run page part",
    strict=UNCOSTED,
)
@network_keywords
@parameter_keywords(options=FusionOptions)
def fuse(
    workload: Annotated["WorkloadSource", NETWORK_FILE],
    hardware: Annotated["AcceleratorSource", SYSTEM_FILE],
    mapping: Annotated[
        "MappingSource | None",
        Help("Mapping file or artifact. The search keeps the values that the file sets; default: no values are set."),
    ] = None,
    *,
    options: Named[FusionOptions],
    start: Annotated[FilePath | None, Help(START_HELP, metavar="PATH")] = None,
    output: Annotated[FilePath | None, Help(f"Folder for {FUSION}, {FIXED_MAPPING}, the schedule, ...")] = None,
    run: Annotated[bool, Help("Write the schedule too, not only the plan.")] = True,
    page: Annotated[bool, Help(f"Write {FUSION_PAGE}, a page with a figure that shows the search.")] = True,
    part: Annotated[str | None, Help(PART_HELP)] = None,
    network_options: NetworkOptions | None = None,
    strict: bool = False,
) -> "Fusion":
    """Best plan that the search finds to fuse a network on several cores.

    Options are given by name. The search keeps the cores, stacks and schedule settings that `mapping` or an option
    fixes, and chooses all others. `start` is the folder or the file of an earlier result. The plan in this earlier
    result is evaluated with the inputs of this call, and the new result is never worse than this plan. `output` is the
    folder for the files of the result. If `run` is true, the files of the schedule are also written. If `page` is true,
    the page of the search is also written.

    `part` is for a search with islands (searches with different seeds that exchange plans). If `part` names one part of
    this search, such as round 1 of island 2, only this part runs. The result then has the best plan of the part, and
    the counts of plans and of schedules that the part evaluated.

    If `strict` is true, work without costs and input without effect are errors. Raises InputError with all errors of
    the input files and options, and MappingError if no plan has a schedule.
    """
    return _fused(workload, hardware, mapping, options, start, output, run, page, part, network_options, strict)[0]


def _over_budget(found: "Fusion", seconds: float, cpu_seconds: float) -> list[str]:
    """Notes, with reasons, on a run time or CPU time that exceeds its budget by more than TOLERATED_S seconds; [] if
    there is none.
    """
    options = found.options
    limits = (
        (seconds, "s, more than the time budget", options.fusion_time_budget_s),
        (cpu_seconds, "CPU s, more than the CPU budget", options.fusion_cpu_budget_s),
    )
    over = [(used, name, most) for used, name, most in limits if most is not None and used > most + TOLERATED_S]
    with_schedule = [one for one in found.found.tried if one.figures is not None]
    why = "a search always finishes one plan, with its schedule, bounds, check and files"
    if len(with_schedule) > 1:
        why = "the time for bounds, check and files was estimated; the best plan needed more time"
    return [f"note: the call took {used:.0f} {name} of {most:g} s: {why}" for used, name, most in over]


def _cutting(options: FusionOptions) -> TilingOptions:
    """Tiling options with the stacks that the user fixes in `options`. Raises InputError for invalid stacks."""
    return TilingOptions(layer_stacks=options.layer_stacks, stack_cutoffs=options.stack_cutoffs or ())


def _checked(
    problem: "SystemProblem", cutting: TilingOptions | None, prefetch: Sequence[str]
) -> tuple[tuple[tuple[int, ...], ...], list[Unused]]:
    """Pair (fixed stacks, unused parts of the files). The stacks are () if they are searched. Raises InputError with
    all errors of the files and the stacks.
    """
    from tilewright.pipeline.stages.preflight.network import preflight

    found = preflight(problem, cutting, prefetch)
    if found.problems:
        raise InputError(found.problems)
    is_fixed = cutting is not None and (
        cutting.layer_stacks is not None or bool(cutting.stack_cutoffs) or cutting.takes_stacks_of(problem.mapping)
    )
    return found.tiling.stacks if is_fixed and found.tiling is not None else (), unused_in(found.notices)


@contextlib.contextmanager
def _progress(problem: "SystemProblem", options: FusionOptions, shown: bool) -> Iterator["Progress"]:
    """Progress bar of the search for plans. It looks like the progress bar of `tilewright allocate`."""
    from tilewright.multicore.allocation.progress import allocation_progress
    from tilewright.multicore.allocation.result import Evaluation, SearchProgress

    with allocation_progress(f"{problem.workload.name} on {problem.accelerator.name}", shown) as tell:

        def told(done: int, planned: int, best: "PlanOutcome | None", elapsed_s: float) -> None:
            figures = None if best is None else best.figures
            point = None if figures is None else Evaluation((), figures.latency_cycles, figures.energy_pj)
            tell(SearchProgress(done, planned, point, elapsed_s, "plans", options.fusion_time_budget_s))

        yield told


def write_fusion(folder: Path, given: "Descriptions", found: "Fusion", run: bool, page: bool = True) -> None:
    """Write the files of the plan. If `run` is true, the files of its schedule are also written. If `page` is true, the
    page of the search is also written; if it is false, the page of an earlier search is deleted.
    """
    from tilewright.cli.island_files import search_provenance
    from tilewright.plans.answer import tried_rows

    tried = tried_rows(found.found)
    write_atomically(folder / FIXED_MAPPING, found.mapping_text)
    if run:
        _write_run(folder, folder / FIXED_MAPPING, given, found)
    write_atomically(folder / FUSION_PLANS, csv_text(tried))
    if page:
        from tilewright.results.multi.fusion_page import fusion_page  # here: it loads a library for figures

        write_atomically(folder / FUSION_PAGE, fusion_page(found.document, tried))
    else:
        (folder / FUSION_PAGE).unlink(missing_ok=True)
    write_document(folder / FUSION, SCHEMA, found.document, search_provenance("fuse", found))


def _write_run(folder: Path, mapping: Path, given: "Descriptions", found: "Fusion") -> None:
    """Schedule the best plan with the functions of the commands `cns`, `cost` and `schedule`, and write the files of
    the schedule into `folder`. `mapping` is the path of the plan's mapping file. Raises AssertionError if the latency
    or the energy differs from the result of the search.
    """
    from tilewright.cli.cns import cns
    from tilewright.cli.cost import cost
    from tilewright.cli.schedule import schedule

    files: dict[str, Any] = {"workload": given.workload, "hardware": given.hardware, "mapping": mapping}
    files["network_options"] = given.network_options
    cns(**files, layer_stacks=found.plan.stacks, output=folder)
    cost(folder, found.options.part(CnSearchOptions), **files, output=folder / COSTS)
    settings = found.schedule_settings.as_dict()
    made = schedule(folder / COSTS, cns=folder, **files, **settings, objective=found.options.objective, output=folder)
    if (made.latency_cycles, made.energy_pj) != (found.latency_cycles, found.energy_pj):
        raise AssertionError(f"{mapping} makes {made.latency_cycles:,} cycles, not {found.latency_cycles:,}")


def _text(document: dict[str, Any], in_full: bool) -> str:
    """Text of the result for a terminal. With `in_full`, the text has all stacks, reloads and cuts, and the commands
    that reproduce the result. Otherwise, it has only stacks of several layers, and at most _MOST_RELOADS_SHOWN reloads
    and _MOST_CUTS_SHOWN cuts.
    """
    from tilewright.base.proof import covered_by, if_copied_line
    from tilewright.results.multi.search_end import search_end
    from tilewright.results.multi.summary import reload_lines
    from tilewright.results.run_tables import edp_text
    from tilewright.results.run_text import plug_in_lines, power_lines, range_lines

    search, bound = document["search"], document["lower_bound"]
    lines = [
        f"{document['workload']} on {document['hardware']}: {document[LATENCY_CYCLES]:,} cycles,"
        f" {energy_text(document[ENERGY_PJ])}, EDP {edp_text(document['edp'])} J cycles",
        *power_lines(document),
        *plug_in_lines(document),
        *range_lines(document),
        f"lower bounds for these tiles: {bound[LATENCY_CYCLES]:,} cycles, {energy_text(bound[ENERGY_PJ])};"
        f" gaps: {document['gap_latency']:.1%} in latency, {document['gap_energy']:.1%} in energy,"
        f" {document['gap_edp']:.1%} in EDP; the bounds hold for {covered_by(bound)}",
        *if_copied_line(document),
        *_any_plan_lines(document),
        f"evaluated: {count_of(search['plans'], 'plan')} and {count_of(search['segments'], 'part')} of the network,"
        f" in {count_of(search['schedules'], 'schedule')}; {search_end(search)}",
    ]
    lbl = document["layer_by_layer"]
    if lbl is not None:
        lines.append(
            f"layer by layer: {lbl[LATENCY_CYCLES]:,} cycles, {energy_text(lbl[ENERGY_PJ])};"
            f" {lbl[LATENCY_CYCLES] / document[LATENCY_CYCLES]:.2f} times the latency,"
            f" {lbl[ENERGY_PJ] / document[ENERGY_PJ]:.2f} times the energy of this plan"
        )
    lines += _reduction_lines(document.get("reductions", ()))
    if "start" in document:
        lines.append(_start_line(document["start"]))
    lines += [_stack_line(stack) for stack in document["stacks"] if in_full or stack["layers"] > 1]
    lines += reload_lines(document["reloads"], len(document["reloads"]) if in_full else _MOST_RELOADS_SHOWN)
    shown = document["cuts"] if in_full else document["cuts"][:_MOST_CUTS_SHOWN]
    lines += [_cut_line(cut) for cut in shown]
    if in_full:
        lines += [f"tilewright {verb} ... {options}" for verb, options in document["reproduce"].items()]
    return ended_lines(lines)


def _any_plan_lines(found: Mapping[str, Any]) -> list[str]:
    """Lines on the lower bounds that hold for every plan, from a `fusion.json`: the bounds, the gaps to these bounds,
    and the terms of the latency bound. For a file of an earlier release without these bounds, the result is [].
    """
    bound = found.get("any_plan")
    if bound is None:
        return []
    terms = ", ".join(f"{name.replace('_', ' ')} {cycles:,}" for name, cycles in bound["latency_terms"].items())
    return [
        f"every plan, of any tiling, takes at least {bound[LATENCY_CYCLES]:,} cycles and"
        f" {energy_text(bound[ENERGY_PJ])}; gaps: {bound['gap_latency']:.1%} in latency,"
        f" {bound['gap_energy']:.1%} in energy, {bound['gap_edp']:.1%} in EDP; the bounds hold for {bound['covers']}",
        f"the bound of the latency over every plan is the largest of: {terms}",
    ]


def _reduction_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of text, one for each search for plans in `rows`. The searches differ in the layers whose reductions are
    cut between cores. A line has the number of these layers, the latency and energy of the best plan, and the number of
    evaluated plans. One line is marked: the search that found the resulting plan.
    """
    lines = []
    for row in rows:
        best, layers = row["best"], count_of(len(row["layers"]), "layer")
        what = f"reductions of {layers} cut into up to {row['parts']} parts, partial sums added as {row['shape']}"
        figures = "no schedule" if best is None else f"{best[LATENCY_CYCLES]:,} cycles, {energy_text(best[ENERGY_PJ])}"
        answer = ", the answer" if row["is_best"] else ""
        plans = count_of(row["plans"], "plan")
        lines.append(f"{what if row['layers'] else 'no reduction cut'}: {figures} ({plans}){answer}")
    return lines


def _start_line(start: dict[str, Any]) -> str:
    if "reason" in start:
        return f"the plan of --start has no schedule with these inputs: {start['reason']}"
    return f"the plan of --start, unchanged: {start[LATENCY_CYCLES]:,} cycles, {energy_text(start[ENERGY_PJ])}"


def _stack_line(stack: dict[str, Any]) -> str:
    if stack["layers"] == 1:
        return f"stack {stack['stack']}: {stack['first']}"
    return f"stack {stack['stack']}: {stack['layers']} layers, {stack['first']} to {stack['last']}"


def _cut_line(cut: dict[str, Any]) -> str:
    where = f"cut between {cut['after']} and {cut['before']}"
    if cut["without"] is None:
        return f"{where}: without this cut there is no schedule"
    cycles, energy = cut["saves_latency_cycles"], cut["saves_energy_pj"]
    if not cycles and not energy:
        return f"{where}: no difference in latency or energy"
    parts = [_worth("latency", f"{abs(cycles):,} cycles", cycles), _worth("energy", energy_text(abs(energy)), energy)]
    return f"{where}: {', '.join(parts)}"


def _worth(figure: str, amount: str, saved: float) -> str:
    return f"{'saves' if saved > 0 else 'costs'} {amount}" if saved else f"no difference in {figure}"
