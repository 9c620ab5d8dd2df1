"""Comparison of cases: measurement, reference tool, our model of the reference tool, and our default model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.harmless import terminal
from tilewright.multicore.scheduling.options import CAUSAL
from tilewright.peers.stream import STREAM_2023
from tilewright.results.terminal_tables import TERMINAL_WIDTH, TextTable, render

from tilewright_evidence.chips.case import SiliconCase
from tilewright_evidence.chips.run import STREAM_2023_SWITCHES, CaseRun, CaseRunner, LatencyTerms, Switches, steps

WITH_KEYS = "with published keys"
"""Name of the default model with the published keys of the chip."""


@dataclass(frozen=True)
class LayerComparison:
    """Cycles of one computation node of a layer, in the reference tool and in our two models. In our models, nodes with
    equal costs form a class; the node belongs to the largest class of the layer.

    Each tuple is (temporal cycles, total0, total1, total2), as in `CaseRun.layer_cycles`; None if the numbers are not
    known.
    """

    layer: str
    reference_cycles: tuple[int, ...] | None
    stream_2023_cycles: tuple[int, ...] | None
    causal_cycles: tuple[int, ...] | None


@dataclass(frozen=True)
class ModelResult:
    """Result of one model for a case."""

    latency_cycles: int
    energy_pj: float
    compute_cycles: int
    """Busy cycles of the busiest core: the sum of the runtimes of its computation nodes."""
    link_cycles: int
    """Cycles that the traffic of the busiest link takes at the full width of the link."""
    from_measured: float | None
    """Relative deviation of the latency from the measurement on the chip; None if there is no measurement."""
    from_reference: float | None
    """Relative deviation of the latency from the latency of the reference tool; None if the latency of the reference
    tool is not known.
    """
    terms: LatencyTerms


@dataclass(frozen=True)
class StepResult:
    """Result after one change. A series of changes turns the model `stream-2023` into the default model."""

    change: str
    latency_cycles: int | None
    """Latency in cycles after the change; None if there is no schedule."""
    energy_pj: float | None


@dataclass(frozen=True)
class CaseComparison:
    """Comparison of one case. If a model has no schedule, its result is None, and `problems` has the reason."""

    case: str
    measured_cycles: float | None
    reference_cycles: float | None
    reference_energy_pj: float | None
    stream_2023: ModelResult | None
    causal: ModelResult | None
    keyed: ModelResult | None
    """Result of the default model with the published keys of the chip; None if the chip has none."""
    keyed_lower_bound_cycles: int | None
    """Lower bound of the latency in cycles with the published keys of the chip, for the allocation of `keyed`."""
    causal_lower_bound_cycles: int | None
    """Lower bound of the latency in cycles, for the allocation of the default model."""
    nodes: int
    edges: int
    """Number of edges in the graph of computation nodes: data edges, and the edges that link the nodes of each layer
    into one chain, as in the reference tool.
    """
    reference_nodes: int | None
    reference_edges: int | None
    layers: tuple[LayerComparison, ...]
    steps: tuple[StepResult, ...] = ()
    notices: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def compare_case(case: SiliconCase, threads: int = 1, with_steps: bool = False) -> CaseComparison:
    """Comparison of a case, with the results of the model `stream-2023` and of the default model. If `with_steps` is
    true, the comparison also has the results of the models between these two models.

    Raises InputError if the case has mistakes. If a model has no schedule, the comparison has the reason.
    """
    runner = CaseRunner(case, threads)
    problems: list[str] = []
    old = _run(runner, STREAM_2023_SWITCHES, STREAM_2023, problems)
    own = _run(runner, Switches(), CAUSAL, problems)
    keyed = _keyed(case, threads, problems)
    expected = case.expected
    layers = tuple(
        LayerComparison(
            layer.name,
            expected.layer_cycles.get(layer.node_id),
            None if old is None else old.layer_cycles(place),
            None if own is None else own.layer_cycles(place),
        )
        for place, layer in enumerate(runner.graph.layers)
    )
    return CaseComparison(
        case=case.name,
        measured_cycles=expected.measured_cycles,
        reference_cycles=expected.reference_cycles,
        reference_energy_pj=expected.reference_energy_pj,
        stream_2023=None if old is None else _result(old, case),
        causal=None if own is None else _result(own, case),
        keyed=None if keyed is None else _result(keyed, case),
        keyed_lower_bound_cycles=None if keyed is None else keyed.lower_bound_cycles,
        causal_lower_bound_cycles=None if own is None else own.lower_bound_cycles,
        nodes=runner.graph.cn_count,
        edges=len(runner.whole_graph.edge_source),
        reference_nodes=expected.reference_nodes,
        reference_edges=expected.reference_edges,
        layers=layers,
        steps=tuple(_step(runner, *step, problems) for step in steps()) if with_steps else (),
        notices=(*case.notices, *runner.notices),
        problems=tuple(dict.fromkeys(problems)),
    )


def _run(runner: CaseRunner, switches: Switches, what: str, problems: list[str]) -> CaseRun | None:
    """Run of the case with a set of switches.

    If there is no schedule, the result is None, and the reason is added to `problems`.
    """
    try:
        return runner.run(switches)
    except (InputError, MappingError) as error:
        told = error.problems if isinstance(error, InputError) else tuple(map(Problem, str(error).splitlines()))
        problems += [str(replace(problem, file=problem.file or f"{runner.case.name} ({what})")) for problem in told]
        return None


def _keyed(case: SiliconCase, threads: int, problems: list[str]) -> CaseRun | None:
    """Run of the default model with the published keys of the chip; None if the chip has none."""
    if case.keyed is None:
        return None
    return _run(CaseRunner(replace(case, system=case.keyed), threads), Switches(), WITH_KEYS, problems)


def _step(runner: CaseRunner, change: str, switches: Switches, problems: list[str]) -> StepResult:
    run = _run(runner, switches, change, problems)
    return StepResult(change, *((None, None) if run is None else (run.latency_cycles, run.schedule.energy_pj)))


def _result(run: CaseRun, case: SiliconCase) -> ModelResult:
    expected = case.expected
    return ModelResult(
        latency_cycles=run.latency_cycles,
        energy_pj=run.schedule.energy_pj,
        compute_cycles=run.compute_cycles,
        link_cycles=int(run.link_cycles.max(initial=0)),
        from_measured=_deviation(run.latency_cycles, expected.measured_cycles),
        from_reference=_deviation(run.latency_cycles, expected.reference_cycles),
        terms=run.terms,
    )


def _deviation(value: float | None, wanted: float | None) -> float | None:
    return value / wanted - 1 if value is not None and wanted else None


def comparison_text(found: Sequence[CaseComparison], verbose: bool = False) -> str:
    """Text on all cases: a table, followed by lines on each case.

    If a case has steps, the lines include the parts of the latency and the results of the steps. The lines include the
    cycles of the layers if `verbose` is true, or if these cycles differ between the model `stream-2023` and the
    reference tool.
    """
    table = TextTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    table.add_column("\ncase", no_wrap=True)
    headings = (
        *("measured\n[cycles]", "reference\n[cycles]", "from\nmeasured"),
        *(f"{STREAM_2023}\n[cycles]", "from\nreference", "from\nmeasured"),
        *(f"{CAUSAL}\n[cycles]", "from\nmeasured"),
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for case in found:
        table.add_row(
            case.case,
            _cycles(case.measured_cycles),
            _cycles(case.reference_cycles),
            _percent(_deviation(case.reference_cycles, case.measured_cycles)),
            *_result_texts(case.stream_2023, with_reference=True),
            *_result_texts(case.causal),
        )
    parts = [render(table)]
    for case in found:
        parts += [
            *map(terminal, _counts(case)),
            *map(terminal, _keyed_line(case)),
            *([*map(terminal, _terms(case)), _steps_text(case)] if case.steps else []),
        ]
        parts += [_layers_text(case)] if verbose or _differing(case) else []
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _result_texts(result: ModelResult | None, with_reference: bool = False) -> list[str]:
    """Texts of one model for a row of the table: latency, deviation from the reference tool (only if `with_reference`
    is true), and deviation from the measurement. Dashes if the model has no schedule.
    """
    if result is None:
        return ["-"] * (3 if with_reference else 2)
    reference = [_percent(result.from_reference)] if with_reference else []
    return [_cycles(result.latency_cycles), *reference, _percent(result.from_measured)]


def _counts(case: CaseComparison) -> list[str]:
    """Line on a case: numbers of nodes and edges, energy, and lower bound."""
    parts = [f"{case.nodes:,} computation nodes, {case.edges:,} edges"]
    if case.reference_nodes is not None and case.reference_edges is not None:
        same = (case.nodes, case.edges) == (case.reference_nodes, case.reference_edges)
        parts[0] += (
            ", as in the reference" if same else f"; reference {case.reference_nodes:,}, {case.reference_edges:,}"
        )
    if case.stream_2023 is not None:
        energy = _percent(_deviation(case.stream_2023.energy_pj, case.reference_energy_pj), 3)
        parts.append(f"energy by {STREAM_2023}: deviates by {energy} from the reference")
    if case.causal_lower_bound_cycles is not None:
        parts.append(f"lower bound of {CAUSAL} {case.causal_lower_bound_cycles:,} cycles")
    return [f"{case.case}: {'; '.join(parts)}"]


def _keyed_line(case: CaseComparison) -> list[str]:
    """Line on the default model with the published keys of the chip; [] if there is no result with keys."""
    if case.keyed is None:
        return []
    told = f"{CAUSAL} {WITH_KEYS}: {case.keyed.latency_cycles:,} cycles"
    if case.keyed.from_measured is not None:
        told += f", {_percent(case.keyed.from_measured)} from measured"
    return [f"{case.case}, {told}; lower bound {case.keyed_lower_bound_cycles:,} cycles"]


def _terms(case: CaseComparison) -> list[str]:
    """Lines on the parts of the latency: one line for each model that has a schedule."""
    lines = []
    for name, result in ((STREAM_2023, case.stream_2023), (CAUSAL, case.causal), (WITH_KEYS, case.keyed)):
        if result is not None:
            terms = result.terms
            lines.append(
                f"{case.case}, {name}: {terms.before_cycles:,} cycles until core {terms.core} begins,"
                f" {terms.computing_cycles:,} computing, {terms.waiting_cycles:,} waiting in between,"
                f" {terms.after_cycles:,} until the last result is off-chip;"
                f" traffic of the busiest link {result.link_cycles:,} cycles"
            )
    return lines


def _steps_text(case: CaseComparison) -> str:
    table = TextTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="", title_justify="left")
    table.add_column(f"{terminal(case.case)}: from {STREAM_2023} to {CAUSAL}", max_width=TERMINAL_WIDTH // 2)
    for heading in ("latency [cycles]", "change", "energy [µJ]"):
        table.add_column(heading, justify="right")
    before = None
    for step in case.steps:
        change = _percent(_deviation(step.latency_cycles, before), 2)
        energy = "-" if step.energy_pj is None else f"{step.energy_pj / 1e6:,.2f}"
        table.add_row(step.change, _cycles(step.latency_cycles), change, energy)
        before = step.latency_cycles
    return render(table)


def _layers_text(case: CaseComparison) -> str:
    table = TextTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    table.add_column(f"{terminal(case.case)}: cycles of a node\n[temporal, total0, total1, total2]")
    for heading in ("reference", STREAM_2023, CAUSAL):
        table.add_column(f"\n{heading}", justify="right")
    for layer in case.layers:
        rows = (layer.reference_cycles, layer.stream_2023_cycles, layer.causal_cycles)
        table.add_row(layer.layer, *("-" if row is None else ", ".join(map(str, row)) for row in rows))
    return render(table)


def _differing(case: CaseComparison) -> bool:
    """True if, for at least one layer, the cycles in the model `stream-2023` differ from the known cycles in the
    reference tool.
    """
    return any(
        layer.stream_2023_cycles is not None and layer.reference_cycles not in (None, layer.stream_2023_cycles)
        for layer in case.layers
    )


def _cycles(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:+.{digits}f} %"


def as_plain(value: Any) -> Any:
    """Comparison as plain data for JSON."""
    from tilewright.base.artifacts.codec import encode

    return encode(value)
