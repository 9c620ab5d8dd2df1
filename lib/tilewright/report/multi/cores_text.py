"""What limits a run on several cores as text for the terminal."""

from tilewright.report.multi.core_cycles import BUSY_CAUSES, CAUSES_OF_CYCLES, WAITS, CoreCycles
from tilewright.report.multi.cores_report import CoresReport
from tilewright.report.multi.doubled_parts import DoubledPart, Limits
from tilewright.report.short_names import short_layer_name
from tilewright.report.text_tables import NOTHING, render, share_text, text_table

MOST_WAITS, MOST_LAYERS, MOST_LINKS, MOST_PARTS = 12, 30, 16, 10


def cores_text(report: CoresReport) -> str:
    """What each core does with the latency, what cores wait for, what twice as much of a part would save, links."""
    parts = [_cores(report), _waits(report)]
    if not report.layer:
        parts += [_limits(report.limits), _links(report), _layers(report)]
    return "\n".join(part for part in parts if part)


def limit_lines(limits: Limits) -> list[str]:
    """The bottleneck and the runner-up in words."""
    if limits.unknown:
        return [f"what limits is not known: {limits.unknown}"]
    if not limits.helpful:
        return ["twice as much of one part saves nothing: the nodes wait for one another, or parts are equally slow"]
    names = ("limited by", "runner-up")
    return [
        f"{name}: {_told(limits, part)} saves {limits.gain_cycles(part):,} cycles,"
        f" {share_text(limits.gain_cycles(part), limits.latency_cycles)}"
        for name, part in zip(names, limits.helpful, strict=False)
    ]


def wait_words(row: CoreCycles) -> str:
    """A cause with what it is of."""
    return f"{row.cause}: {row.what}" if row.what else row.cause


def _told(limits: Limits, part: DoubledPart) -> str:
    equal = sum(limits.gain_cycles(one) == limits.gain_cycles(part) for one in limits.parts) - 1
    return part.words + (f" (or {equal} other{'s' * (equal > 1)})" if equal else "")


def _cores(report: CoresReport) -> str:
    by_core = report.added(lambda row: (row.core, row.cause))
    causes = [cause for cause in CAUSES_OF_CYCLES if any(key[1] == cause for key in by_core)]
    title = f"What each core does with the latency, {report.latency_cycles:,} cycles"
    if report.layer:
        title = "Cycles of the cores that run it, or wait before it"
    table = text_table(title, ("core",), (*causes, *(["cycles"] if report.layer else [])))
    for core in report.cores:
        values = [by_core.get((core, cause), 0) for cause in causes]
        whole = sum(values)
        shares = (share_text(value, whole) if value else "" for value in values)
        table.add_row(core, *shares, *([f"{whole:,}"] if report.layer else []))
    return render(table)


def _waits(report: CoresReport) -> str:
    waits = report.added(wait_words, WAITS)
    if not waits:
        return ""
    table = text_table("What cores wait for, all of them together", ("cause", "most before"), ("cycles", "share"))
    total = sum(waits.values())
    of_layers = report.added(lambda row: (wait_words(row), row.layer), WAITS)
    for words, cycles in list(waits.items())[:MOST_WAITS]:
        layer = next(layer for name, layer in of_layers if name == words)
        most = f"{short_layer_name(layer, '', 30)} ({share_text(of_layers[words, layer], cycles)})"
        table.add_row(words, most, f"{cycles:,}", share_text(cycles, total))
    rest = len(waits) - MOST_WAITS
    return render(table) + (f"  {rest} shorter waits are in the tables\n" if rest > 0 else "")


def _limits(limits: Limits) -> str:
    lines = "".join(f"{line}\n" for line in limit_lines(limits))
    if limits.unknown or not limits.helpful:
        return lines
    title = "What twice as much of one part would save, the same allocation and cost tables"
    table = text_table(title, ("part",), ("cycles", "share"))
    for part in limits.helpful[:MOST_PARTS]:
        gain = limits.gain_cycles(part)
        table.add_row(part.words, f"{gain:,}", share_text(gain, limits.latency_cycles))
    worse = [part for part in limits.parts if limits.gain_cycles(part) < 0]
    text = lines + render(table)
    if worse:
        text += f"  {len(worse)} would make it longer: the order in which cores take nodes is no longer a good one\n"
    return text


def _links(report: CoresReport) -> str:
    table = text_table("Links", ("link",), ("width [bit/cycle]", "moved [KiB]", "busy", "of its width"))
    for link in report.links[:MOST_LINKS]:
        width = "unlimited" if link.width_bits_per_cycle is None else f"{link.width_bits_per_cycle:,}"
        used = NOTHING if link.utilisation is None else share_text(link.utilisation, 1.0)
        table.add_row(link.name, width, f"{link.bits / 8192:,.1f}", share_text(link.busy, 1.0), used)
    rest = len(report.links) - MOST_LINKS
    if not report.links:
        return ""
    return render(table) + (f"  {rest} links that carry less are in the tables\n" if rest > 0 else "")


def _layers(report: CoresReport) -> str:
    """The layers that take most of the cores' time."""
    title = "Layers: cycles of all cores that run them, or wait before their nodes"
    table = text_table(title, ("layer", "waits most for"), ("computing", "waiting"))
    busy, waits = (report.added(lambda row: row.layer, causes) for causes in (BUSY_CAUSES, WAITS))
    of_waits = report.added(lambda row: (row.layer, wait_words(row)), WAITS)
    order = sorted(dict.fromkeys([*busy, *waits]), key=lambda layer: -(busy.get(layer, 0) + waits.get(layer, 0)))
    for layer in order[:MOST_LAYERS]:
        most = next((words for name, words in of_waits if name == layer), "")
        share = f" {share_text(of_waits[layer, most], waits[layer])}" if most else ""
        told = f"{busy.get(layer, 0):,}", f"{waits.get(layer, 0):,}"
        table.add_row(short_layer_name(layer, limit=30), f"{most}{share}" or NOTHING, *told)
    rest = len(order) - MOST_LAYERS
    return render(table) + (f"  {rest} shorter layers are in the tables\n" if rest > 0 else "")
