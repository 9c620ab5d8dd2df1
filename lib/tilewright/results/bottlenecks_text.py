"""Text for the terminal on the bottlenecks of a run, for the network or for one layer."""

from collections.abc import Iterator, Mapping, Sequence

from tilewright.base.errors import count_of
from tilewright.base.harmless import ended_lines
from tilewright.base.units import energy_text
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.waiting import CALL, COMMAND, REQUEST
from tilewright.hardware.core import DIRECTIONS
from tilewright.results.array_use import array_text
from tilewright.results.bottlenecks import LIMITING_RULE, STALL, Bottlenecks, Share, cause_words
from tilewright.results.port_limits import LEAST_SHARE, PortLimit, saves_enough
from tilewright.results.run_ledger import AFTER_LAYERS, ENDS_LATER, ENERGY, LATENCY, NO_TERM, words_of_term
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.text_tables import NOTHING, share_text
from tilewright.results.two_runs_text import UNITS, amount, title_of
from tilewright.results.words import short_layer_name

MOST_LAYERS = 60
LAYER_CHARACTERS = 26
CAUSE_WORDS = {
    "onloading": "data move before the array begins",
    "offloading": "data move after the array has ended",
    "drain": "the last results leave the array",
    CALL: "calls by the host take longer than the work of a call, or too few calls are in flight",
    COMMAND: "commands to the array take longer than the work of a command, or too few commands are in flight",
    REQUEST: "requests to the outermost memory take longer than their transfers, or too few requests are in flight",
}
DIRECTION_WORDS = {
    "tl": "read, to the level below",
    "fl": "written, from below",
    "th": "read, to the level above",
    "fh": "written, from above",
}
AT_ANY_WIDTH = (
    f"and ports of any width would save less than {LEAST_SHARE:.0%} of the latency: each transfer takes at least one"
    " cycle, and the transfers of a port take turns"
)
"""Words on layers that wait for data, but would not be faster with wider ports."""
_LIMITED_BY = (
    "limited by: the kind of cycles with most of the layer's latency, and its share; then the port whose doubled width"
    " saves most, and the saving. The saving can be far below the share, because other ports then limit the layer"
)
"""Legend of the column `limited by` in the table of layers."""
_OF_SCHEDULES = (ENDS_LATER, AFTER_LAYERS, NO_TERM)


def bottlenecks_text(found: Bottlenecks) -> str:
    """Text on the parts of energy and cycles, the largest part first, and on the limiting ports."""
    array = array_text(found.array, found.total(LATENCY)) if found.array else ""
    parts = [_heading(found), _cycles(found), array, _of_cores(found), _chain(found), _energy(found)]
    if found.layer:
        parts.append(_ports_of_layer(found, found.layer))
    elif found.cores is None:
        parts += [_limits_of_network(found), _layers(found)]
    return "\n".join(part for part in parts if part)


def _heading(found: Bottlenecks) -> str:
    run = found.run
    chosen = ", ".join(f"{words} {text}" for words, text in (("best", run.objective), ("model", run.model)) if text)
    what = f"{found.layer} of {title_of(run)}" if found.layer else title_of(run)
    totals = f"{energy_text(found.total(ENERGY))}, {amount(found.total(LATENCY), LATENCY)} {UNITS[LATENCY][1]}"
    return ended_lines([f"{what}: {totals}{f' ({chosen})' if chosen else ''}"])


def _cycles(found: Bottlenecks) -> str:
    table = text_table("Cycles by cause", ("cause",), ("cycles", "share"))
    total = found.total(LATENCY)
    if not has_causes(found):
        return ""
    for cause, cycles in found.added(LATENCY, cause_words).items():
        table.add_row(cause, amount(cycles, LATENCY), share_text(cycles, total))
    table.add_row("all", amount(total, LATENCY), "")
    terms = {one.term for one in found.shares if one.quantity == LATENCY}
    legend = [f"{words_of_term(term)}: {words}" for term, words in CAUSE_WORDS.items() if term in terms]
    return render(table) + (ended_lines(["; ".join(legend)], "  ") if legend else "")


def _of_cores(found: Bottlenecks) -> str:
    """Text on the cores of a run on several cores: the cycles of each core by cause, and the part of the system whose
    doubling saves most cycles. '' if the report on the cores is not known.
    """
    if found.cores is None:
        return ""
    from tilewright.results.multi.cores_report import cores_text  # which runs on one core need not load

    return cores_text(found.cores)


def _chain(found: Bottlenecks) -> str:
    """Text on the activities and layers that make up the latency of a run on several cores."""
    if not found.chain:
        return ""
    from tilewright.results.multi.start_causes import COMPUTING  # which runs on one core need not load

    of_layer = " in this layer" if found.layer else ""
    title = f"Parts of the latency{of_layer}: the chain of causes from cycle 0 to the end"
    table = text_table(title, ("what", *(() if found.layer else ("largest layer",))), ("cycles", "share"))
    total = sum(part.cycles for part in found.chain)
    by_what: dict[tuple[str, str], dict[str, int]] = {}
    for part in found.chain:
        layers = by_what.setdefault((part.what, part.place), {})
        layers[part.layer] = layers.get(part.layer, 0) + part.cycles
    for (what, place), layers in sorted(by_what.items(), key=lambda pair: -sum(pair[1].values())):
        cycles = sum(layers.values())
        largest = max(layers, key=lambda layer: layers[layer])
        said = f"{short_layer_name(largest, '', 40)} ({share_text(layers[largest], cycles)})" if largest else NOTHING
        words = f"{what} on {place}" if what == COMPUTING else f"{what} {place}"
        table.add_row(words, *(() if found.layer else (said,)), amount(cycles, LATENCY), share_text(cycles, total))
    table.add_row("all", *(() if found.layer else ("",)), amount(total, LATENCY), "")
    return render(table)


def has_causes(found: Bottlenecks) -> bool:
    """True if the latency of the run is divided by cause. False if the artifacts give only the end of each layer."""
    return any(one.term not in _OF_SCHEDULES for one in found.shares if one.quantity == LATENCY)


def _energy(found: Bottlenecks) -> str:
    """Text on the energy by memory, operand and direction."""
    title = f"Energy by memory, operand and direction [{UNITS[ENERGY][1]}]"
    directions = [one for one in DIRECTIONS if any(share.direction == one for share in found.shares)]
    table = text_table(title, ("memory", "operand"), (*directions, "all", "share"))
    total = found.total(ENERGY)
    by_direction = found.added(ENERGY, lambda one: (memory_words(one), one.operand, one.direction))
    for (memory, operand), energy in found.added(ENERGY, lambda one: (memory_words(one), one.operand)).items():
        parts = [by_direction.get((memory, operand, one)) for one in directions]
        told = ["" if part is None else amount(part, ENERGY) for part in parts]
        table.add_row(memory, operand, *told, amount(energy, ENERGY), share_text(energy, total))
    table.add_row("all", "", *[""] * len(directions), amount(total, ENERGY), "")
    legend = "; ".join(f"{one}: {DIRECTION_WORDS[one]}" for one in directions)
    return render(table) + (f"  {legend}\n" if legend else "")


def memory_words(share: Share) -> str:
    """Text for a part of the energy: the name of the memory for accesses, otherwise the name of the term."""
    return share.memory if share.term == ACCESSES and share.memory else words_of_term(share.term)


def _limits_of_network(found: Bottlenecks) -> str:
    limit = found.network_limit
    if limit is None:
        return ended_lines([f"The limiting ports are not known: {found.unknown}."]) if found.unknown else ""
    table = text_table(
        "A port twice as wide, with the same mappings", ("port",), ("saves cycles", "share", "limits layers")
    )
    count, small = len(found.limits), 0
    for one in limit.ports:
        own = [each for each in found.limits.values() if any(tie.ports == one.ports for tie in each.ties)]
        limited, gain = sum(each.is_limited_by_one for each in own), limit.gain_cycles(one)
        if limited or saves_enough(gain, limit.latency_cycles):
            share = share_text(gain, limit.latency_cycles, LEAST_SHARE)
            table.add_row(one.name, amount(gain, LATENCY), share, f"{limited} of {count}")
        else:
            small += gain > 0
    lines = [*_left_out(small), *_layers_without_port(found)]
    told = render(table) if table.row_count else ""
    if not limit.is_limited_by_one:
        told += "No single port would save 1% of the latency if it were twice as wide.\n" + _together(limit)
    return told + ended_lines(lines, "  ")


def _together(limit: PortLimit) -> str:
    """Text on the cycles that the set of ports `limit.together` saves if all its ports are twice as wide. '' if there
    is no such set.
    """
    if limit.together is None:
        return ""
    gain = limit.gain_cycles(limit.together)
    saves = f"{amount(gain, LATENCY)} cycles, -{share_text(gain, limit.latency_cycles)}"
    return ended_lines([f"{limit.together.name}, together twice as wide, would save {saves}."])


def _left_out(small: int) -> list[str]:
    less = f"would save less than {LEAST_SHARE:.0%} of the latency of the network"
    return [LIMITING_RULE, *([f"{count_of(small, 'other port')} {less}"] if small else [])]


def _layers_without_port(found: Bottlenecks) -> list[str]:
    none = [one for one in found.limits.values() if not one.is_limited_by_one]
    together = sum(one.is_limited for one in none)
    lines = [f"in {len(none)} of {len(found.limits)} layers, no single port is the limit"] if none else []
    lines += [f"{together} of these layers would be faster if several ports were wider"] if together else []
    waiting = _waiting_cycles(found)
    lines += _waiting_at_any_width(found, waiting)
    rest = len(none) - together - len(waiting)
    if rest and (together or waiting):
        others = f"each of the other {rest} layers" if rest > 1 else "the other layer"
        lines.append(f"{others} would save less than {LEAST_SHARE:.0%} of its latency with ports twice as wide")
    return lines


def _wait(layers: int) -> str:
    return "waits" if layers == 1 else "wait"


def _waiting_cycles(found: Bottlenecks) -> dict[str, float]:
    """Cycles in which the array waits for data, by layer. Only layers that wait even if ports are very wide, for at
    least LEAST_SHARE of their latency.
    """
    waited = {layer: _stall_cycles(found, layer) for layer, limit in found.limits.items() if limit.is_beyond_width}
    return {layer: own for layer, own in waited.items() if saves_enough(own, found.total(LATENCY, layer))}


def _waiting_at_any_width(found: Bottlenecks, waiting: Mapping[str, float]) -> Iterator[str]:
    """Line on the layers in which the array waits for data even if ports are very wide. No line if there are no such
    layers. `waiting` is the result of `_waiting_cycles`.
    """
    if not waiting:
        return
    share = share_text(sum(waiting.values()), found.total(LATENCY))
    of_layers = f"{len(waiting)} of these layers {_wait(len(waiting))}"
    yield f"{'the layer waits' if found.layer else of_layers} for data in {share} of all cycles, {AT_ANY_WIDTH}"


def _stall_cycles(found: Bottlenecks, layer: str) -> float:
    """Cycles of a layer in which the array waits for ports."""
    return sum(one.value for one in found.shares if (one.term, one.layer) == (STALL, layer))


def _layers(found: Bottlenecks) -> str:
    """Text of a table of the layers, the longest first. Equal layers share a row. The table has at most MOST_LAYERS
    rows.
    """
    has_cycles = has_causes(found)
    names = ("layer", *(("largest cause",) if has_cycles else ()), *(("limited by",) if found.limits else ()))
    table = text_table("Layers, the longest first", names, ("cycles", "share"))
    totals = {
        layers: sum(found.total(LATENCY, layer) for layer in layers)
        for layers in found.equal_layers or [(layer,) for layer in found.layers]
    }
    order = sorted(totals, key=lambda layers: -totals[layers])
    for layers in order[:MOST_LAYERS]:
        many = f" x {len(layers)}" if len(layers) > 1 else ""
        row = [short_layer_name(layers[0], limit=LAYER_CHARACTERS) + many]
        row += [_largest(found, layers[0])] if has_cycles else []
        row += [found.limited_by(layers[0])] if found.limits else []
        table.add_row(*row, amount(totals[layers], LATENCY), share_text(totals[layers], found.total(LATENCY)))
    rest = sum(map(len, order[MOST_LAYERS:]))
    lines = (
        ["x 2: two layers with equal mappings and costs, with the name of the first layer and the cycles of both"]
        if any(len(one) > 1 for one in order)
        else []
    )
    if any(limit.is_limited for limit in found.limits.values()):
        lines.insert(0, _LIMITED_BY)
    lines += [f"not shown: {count_of(rest, 'shorter layer')} (`-o FOLDER` writes all)"] if rest else []
    return render(table) + ended_lines(lines, "  ")


def _largest(found: Bottlenecks, layer: str) -> str:
    return found.causes(layer).text or NOTHING


def _ports_of_layer(found: Bottlenecks, layer: str) -> str:
    limit = found.limits.get(layer)
    names = ("busy", "the array waits", *(("twice as wide saves", "share") if limit else ()))
    table = text_table("Ports [cycles]", ("port",), names)
    uses = {(use.memory, use.port): use for use in found.uses.get(layer, ())}
    order: Sequence[tuple[str, str]] = [one.ports[0] for one in limit.ports] if limit else list(uses)
    for key in order:
        use = uses.get(key)
        row = [" ".join(key), *((f"{use.busy_cycles:,}", f"{max(0, use.stall_cycles):,}") if use else ("", ""))]
        if limit:
            gain = limit.latency_cycles - next(one.latency_cycles for one in limit.ports if one.ports == (key,))
            row += [amount(gain, LATENCY), share_text(gain, limit.latency_cycles)]
        table.add_row(*row)
    told = ended_lines([f"limited by: {found.limited_by(layer)}"], "  ") if limit else ""
    if limit and not limit.is_limited_by_one:
        told += ended_lines(
            [*_together(limit).splitlines(), *_waiting_at_any_width(found, _waiting_cycles(found))], "  "
        )
    unknown = ended_lines([f"the limiting ports are not known: {found.unknown}"], "  ") if found.unknown else ""
    return render(table) + told + unknown if uses else unknown
