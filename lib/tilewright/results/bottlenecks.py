"""Bottlenecks of a run: all parts of its energy and latency, and the limit of each layer.

The terms of energy and latency are those of the ledger (`run_ledger.py`). Each temporal stall names the port for which
the array waits. The energy of accesses is divided by memory, operand and direction
(docs/bottlenecks/explain.md#explain-a-run).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.harmless import terminal
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.units import energy_text
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import LayerRecord, PortRecord
from tilewright.cost.waiting import CALL, COMMAND
from tilewright.hardware.core import Core
from tilewright.results.array_use import ArrayUses
from tilewright.results.outer_traffic import Traffic, traffic_of
from tilewright.results.port_limits import LEAST_SHARE, PortLimit, Roofline, limit_of_network, port_limit, roofline
from tilewright.results.recorded_mappings import recorded_mappings
from tilewright.results.records import PlacedLayer, memory_energies_pj, other_energies_pj
from tilewright.results.run_ledger import ENERGY, LATENCY, QUANTITIES, LedgerPlace, RunLedger, words_of_term
from tilewright.results.run_point import RunPoint
from tilewright.results.shown import shown_html
from tilewright.results.text_tables import NOTHING
from tilewright.results.verdict import Rival, Verdict
from tilewright.workload.graph import Workload

if TYPE_CHECKING:
    import pandas

    from tilewright.results.multi.cores_report import CoresReport
    from tilewright.results.multi.start_causes import ChainPart

LIMITING_RULE = (
    "the limiting port of a layer is the port whose doubled width saves most cycles, if it saves at least"
    f" {LEAST_SHARE:.0%} of the latency of this layer"
)
"""Rule that names the limiting port of a layer, for legends and notes."""
STALL = "temporal_stall"
"""Term of the latency: cycles in which the array waits for ports."""
ARRAY: str = "array"
IDLE_UNITS: str = "spatial stall"
MOVING_DATA: str = "moving data"
WAITING: str = "calls and commands"
"""Kinds of causes of cycles. ARRAY: the array works. IDLE_UNITS: units of the array are idle. MOVING_DATA: data move.
WAITING: calls and commands take time (docs/model/waiting.md).
"""
CAUSE_OF_TERM = {"ideal": ARRAY, "spatial_stall": IDLE_UNITS, CALL: WAITING, COMMAND: WAITING}
"""Causes of terms of the latency, by term. All terms that are not listed are caused by data movement."""
ALL = "all"
"""Text in the column `term` of `totals_table`, in the rows with totals."""
_USE_COLUMNS = ("layer", "memory", "port", "busy_cycles", "stall_cycles")


class Share(NamedTuple):
    """Part of the energy (in pJ) or of the latency (in cycles) of a run. Fields that do not apply are ''."""

    quantity: str
    """Quantity: ENERGY or LATENCY."""
    layer: str
    term: str
    memory: str
    port: str
    operand: str
    """Operand whose data are accessed. For moved data of a run on several cores, this field has `link` or `memory`: the
    kind of hardware that uses the energy.
    """
    direction: str
    value: float


class PortUse(NamedTuple):
    """Use of a port while a layer runs."""

    memory: str
    port: str
    stall_cycles: int
    """Cycles that the array would wait for this port if no other port made it wait. A negative number is the slack in
    cycles.
    """
    busy_cycles: int
    """Cycles in which the port moves data."""


@dataclass(frozen=True, eq=False, repr=False)
class Bottlenecks:
    """Parts of the energy and the cycles of a run. The function `bottlenecks_of` makes this object."""

    run: RunPoint
    shares: tuple[Share, ...]
    """Parts of the energy and the latency; parts that are 0 are left out. On one core, the layers are in execution
    order, and each layer has its energy first, then its latency. On several cores, all parts of the energy come first.
    Parts of the same layer and quantity are in the order of summation.
    """
    limits: Mapping[str, PortLimit] = field(default_factory=dict)
    """Latencies of each layer with wider ports, by layer name; {} if not known."""
    network_limit: PortLimit | None = None
    """Latencies of all layers together if ports are wider; None if they are not known."""
    roofline: Roofline | None = None
    """Roofline of the run; None if the hardware is not known."""
    uses: Mapping[str, tuple[PortUse, ...]] = field(default_factory=dict)
    """Use of each port of the core while a layer runs, by layer name; {} on several cores."""
    unknown: str = ""
    """Reason why the limits are not known; '' if they are known."""
    layer: str = ""
    """Layer to which this object is restricted; '' for all layers."""
    chain: "tuple[ChainPart, ...]" = ()
    """Parts of the latency of a run on several cores, in order of time (`latency_chain`)."""
    cores: "CoresReport | None" = None
    """Report on the cores of a run on several cores: cycles of each core, and limits of the run. None for a run on one
    core, or if the report is not known.
    """
    array: ArrayUses | None = None
    """Use of the array and causes of idle units; None if the hardware is not known."""
    traffic: tuple[Traffic, ...] = ()
    """Bits that move at the outermost memories, by layer and operand; () if the hardware is not known."""
    equal_layers: tuple[tuple[str, ...], ...] = ()
    """Groups of layers with equal mappings and costs, in the execution order of their first layers; () on several
    cores.
    """
    made_of: Mapping[str, str] = field(default_factory=dict)
    """Digests of the inputs from which limits and roofline were computed; {} if there are no limits."""

    def total(self, quantity: str, layer: str = "") -> float:
        """Sum of the parts of a quantity (ENERGY in pJ, or LATENCY in cycles). The parts are those of the layer named
        `layer`, or of all layers in this object if `layer` is ''.
        """
        if not layer:
            total: float = getattr(self.run, quantity)
            return total
        return sum(one.value for one in self.shares if (one.quantity, one.layer) == (quantity, layer))

    @property
    def energy(self) -> "pandas.DataFrame":
        """Table with a row for each part of the energy, in pJ."""
        return energy_table(self.shares)

    @property
    def ports(self) -> "pandas.DataFrame":
        """Table with a row for each layer and port, as in `ports.csv`: the use of the port, and the cycles that a wider
        port would save.
        """
        return port_table(self)

    def __repr__(self) -> str:
        of = f"{self.layer} of {self.run.run}" if self.layer else self.run.run
        limit, named = self.network_limit, ""
        if limit is not None:
            named = f"; limited by {self.limited_by()}"
        return terminal(
            f"<bottlenecks of {of}: {energy_text(self.total(ENERGY))}, {self.total(LATENCY):,.0f} cycles{named}>"
        )

    def _repr_html_(self) -> str:
        return shown_html(repr(self)[1:-1], share_table(self))

    def of_layer(self, layer: str) -> "Bottlenecks":
        """Bottlenecks of one layer. Raises InputError if the run has no such layer."""
        if layer not in self.layers:
            nearest = nearest_name(layer, list(self.layers))
            raise InputError([Problem("the run has no such layer", path="layer", value=layer, nearest=nearest)])
        return replace(
            self,
            run=replace(self.run, energy_pj=self.total(ENERGY, layer), latency_cycles=self.total(LATENCY, layer)),
            shares=tuple(one for one in self.shares if one.layer == layer),
            limits={name: limit for name, limit in self.limits.items() if name == layer},
            network_limit=self.limits.get(layer),
            roofline=None if self.roofline is None else self.roofline.of_layer(layer),
            uses={name: uses for name, uses in self.uses.items() if name == layer},
            layer=layer,
            array=None if self.array is None else self.array.of_layer(layer),
            traffic=tuple(one for one in self.traffic if one.layer == layer),
            equal_layers=((layer,),) if self.equal_layers else (),
            chain=tuple(part for part in self.chain if part.layer == layer),
            cores=None if self.cores is None else self.cores.of_layer(layer),
        )

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with energy or cycles, in execution order."""
        return tuple(dict.fromkeys(one.layer for one in self.shares if one.layer))

    def causes(self, layer: str = "") -> Verdict:
        """Verdict that names the cause with the most cycles. The verdict is on the layer named `layer`, or on all
        layers if `layer` is ''. Causes are distinguished as in tables and charts (`cause_words`): by the term of the
        latency and, for stalls, by the port for which the array waits.
        """
        causes = self.added(LATENCY, cause_words, layer)
        return Verdict.of("cycles by cause", "cycles", self.total(LATENCY, layer), causes)

    def kinds(self, layer: str = "") -> Verdict:
        """Verdict that names the kind of cause with the most cycles. The kinds are ARRAY, IDLE_UNITS, MOVING_DATA and
        WAITING. MOVING_DATA is the sum of all data movement. The verdict is on the layer named `layer`, or on all
        layers if `layer` is ''.
        """
        causes = self.added(LATENCY, lambda one: CAUSE_OF_TERM.get(one.term, MOVING_DATA), layer)
        return Verdict.of("cycles by kind", "cycles", self.total(LATENCY, layer), causes)

    def limit(self, layer: str = "") -> PortLimit | None:
        """Latencies with wider ports for the layer named `layer`; for all layers together if `layer` is ''. None if
        they are not known.
        """
        return self.limits.get(layer) if layer else self.network_limit

    def limited_by(self, layer: str = "") -> str:
        """Short text on the limit of a layer, or of all layers.

        The text names the kind of cause with most cycles (several kinds if they are equal) and its share of the
        latency. Then it names the port whose doubled width saves most cycles. If no single port saves LEAST_SHARE of
        the latency, it names the smallest set of ports whose doubled widths together save this share. No port is named
        if no such set exists.
        """
        limit, kinds = self.limit(layer), self.kinds(layer)
        words = kinds.text or ARRAY
        if limit is None or not limit.is_limited:
            return words
        joint = ": " if any(one.name == MOVING_DATA for one in kinds.alike) else "; "
        return f"{words}{joint}{limit_words(limit)} {limit.verdict.share(_rival(limit))}"

    def added(self, quantity: str, key: Callable[[Share], Any], layer: str = "") -> dict[Any, float]:
        """Sums of the parts of a quantity, by key, the largest sum first. `key` is a function from a part to its key.
        Only the parts of the layer named `layer` are added; if `layer` is '', all parts are added.
        """
        found: dict[Any, float] = {}
        for one in self.shares:
            if one.quantity == quantity and layer in ("", one.layer):
                found[key(one)] = found.get(key(one), 0.0) + one.value
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def bottlenecks_of(
    ledger: RunLedger,
    placed: Sequence[PlacedLayer] = (),
    core: Core | None = None,
    network: Workload | None = None,
    unknown: str = "",
) -> Bottlenecks:
    """Bottlenecks of a run. `placed` has the layers of a run on one core; it is empty for a run on several cores.

    `core` and `network` are the inputs of the run. If they are not given, the limits are not known, and `unknown` says
    why. Raises InputError if the run was not made from these inputs.
    """
    shares = tuple(one for layer in placed for one in layer_shares(layer.name, layer.record))
    shares = shares or tuple(entry_shares(ledger.entries))
    uses, equal = uses_of(placed), _equal_layers(placed)
    if core is None or network is None or not placed:
        return Bottlenecks(ledger.run, shares, uses=uses, unknown=unknown, equal_layers=equal)
    limits, whole = _limits(placed, core, network)
    by_layer = {layer.name: limit for layer, limit in zip(placed, limits, strict=True)}
    made = Bottlenecks(ledger.run, shares, by_layer, whole, roofline(placed, core), uses, equal_layers=equal)
    return replace(made, traffic=traffic_of(placed, core, network))


def limit_words(limit: PortLimit | None) -> str:
    """Short text that names the limiting port or set of ports (`PortLimit.named`). If several ports save equally many
    cycles, the text names the first and counts the others. The text is "no port" if there is no limiting port or set,
    and NOTHING if `limit` is None.
    """
    if limit is None:
        return NOTHING
    named = limit.named
    if named is None:
        return "no port"
    if len(named.ports) > 1:
        return f"together: {named.name}"
    more = len(limit.ties) - 1
    return named.name + (f" (or {more} other{'s' * (more > 1)})" if more else "")


def _rival(limit: PortLimit) -> Rival:
    assert limit.named is not None
    return Rival(limit.named.name, limit.gain_cycles(limit.named))


def cause_words(share: Share) -> str:
    """Text for the cause of a part of the latency: the term and, if the array waits for a port, this port."""
    port = f", {share.memory} {share.port}" if share.port else ""
    return words_of_term(share.term) + port


def _equal_layers(placed: Sequence[PlacedLayer]) -> tuple[tuple[str, ...], ...]:
    found: dict[tuple[int, int], list[str]] = {}
    for layer in placed:
        found.setdefault((layer.record_index, layer.repeats), []).append(layer.name)
    return tuple(map(tuple, found.values()))


def share_table(found: Bottlenecks) -> "pandas.DataFrame":
    """Table with a row for each part of the energy (in pJ) and each part of the latency (in cycles) of a run. The
    columns are the fields of `Share`.
    """
    import pandas  # slow to load, and the text needs none

    return pandas.DataFrame(found.shares, columns=list(Share._fields))


def totals_table(found: Bottlenecks) -> "pandas.DataFrame":
    """Table for a paper with the parts of the energy and of the latency, summed over the layers. It has the columns of
    `share_table` except the layer. The additional column `share` has each part as a share of its total.

    The parts of a quantity are in descending order, and their total follows in a row with the term `all`.
    """
    import pandas

    table = share_table(found)
    causes = [name for name in table if name not in ("layer", "value")]
    sums = table.groupby(causes, sort=False, dropna=False)["value"].sum().reset_index()
    parts = []
    for quantity, rows in sums.groupby("quantity", sort=False):
        total = found.total(str(quantity))
        ordered = rows.sort_values("value", ascending=False, kind="stable")
        all_of_them = dict.fromkeys(causes, "") | {"quantity": quantity, "term": ALL, "value": total}
        part = pandas.concat([ordered, pandas.DataFrame([all_of_them])], ignore_index=True)
        parts.append(part.assign(share=part["value"] / total if total else 0.0))
    made = pandas.concat(parts, ignore_index=True) if parts else sums.assign(share=0.0)
    return made.assign(term=made["term"].map(lambda term: ALL if term == ALL else words_of_term(term)))


def port_table(found: Bottlenecks) -> "pandas.DataFrame":
    """Table with a row for each layer and port. The columns are the use of the port, the latency of the layer with this
    port twice as wide, and the rank of the port by this latency.
    """
    import pandas

    columns = [*_USE_COLUMNS, "wider_latency_cycles", "gain_cycles", "rank"]
    return pandas.DataFrame([dict(row) for row in _port_rows(found)], columns=columns)


def limiting_table(found: Bottlenecks) -> tuple["pandas.DataFrame", list[str]]:
    """Pair (table for a paper with the limit of each layer, notes). The table states the limits in the words of
    `explain`. If a single port limits the layer, the row has the cycles of this port. Equal layers share a row, with
    sums of their cycles.
    """
    import pandas

    rows = []
    shared = [layers for layers in found.equal_layers if layers[0] in found.limits]
    for layers in shared or [(layer,) for layer in found.limits]:
        layer, count = layers[0], len(layers)
        limit = found.limits[layer]
        name = f"{layer} x {count}" if count > 1 else layer
        row: dict[str, Any] = {"layer": name, "limited_by": found.limited_by(layer)}
        row[LATENCY_CYCLES] = count * limit.latency_cycles
        if limit.is_limited_by_one and limit.limiting is not None:
            port = limit.limiting.ports[0]
            use = next((one for one in found.uses.get(layer, ()) if (one.memory, one.port) == port), None)
            if use is not None:
                row |= {"busy_cycles": count * use.busy_cycles, "stall_cycles": count * use.stall_cycles}
            row |= {"gain_cycles": count * limit.gain_cycles(limit.limiting)}
        rows.append(row)
    none = sum(not limit.is_limited_by_one for limit in found.limits.values())
    notes = [f"{LIMITING_RULE}."]
    if none:
        notes.append(
            f"in {none} of {len(found.limits)} layers, no single port is the limit: for these layers, the columns with"
            " the cycles of a port are empty."
        )
    if any(len(layers) > 1 for layers in shared):
        notes.append("“x 2” after a name: sums over 2 equal layers, named by the first of them.")
    notes += [
        "stall cycles below 0 are slack: the port has this many cycles to spare, and the array does not wait for it.",
        "gain: cycles that the layer saves if the port is twice as wide. The gain includes on-loading and off-loading,"
        " but the stall cycles do not: a port without a stall can have a gain.",
    ]
    columns = ["layer", "limited_by", LATENCY_CYCLES, "busy_cycles", "stall_cycles", "gain_cycles"]
    return pandas.DataFrame(rows, columns=columns), notes


def energy_table(shares: Iterable[Share]) -> "pandas.DataFrame":
    """Table with a row for each part of the energy, in pJ."""
    import pandas

    rows = [one for one in shares if one.quantity == ENERGY]
    columns = {
        name: [getattr(one, name) for one in rows] for name in ("layer", "term", "memory", "operand", "direction")
    }
    return pandas.DataFrame({**columns, ENERGY: pandas.Series([one.value for one in rows], dtype=float)})


def use_table(uses: Mapping[str, Sequence[PortUse]]) -> "pandas.DataFrame":
    """Table of the uses of ports, with a row for each layer and port. Unlike `port_table`, it needs no hardware, but
    does not have the cycles that a wider port would save.
    """
    import pandas

    return pandas.DataFrame([_use_row(layer, use) for layer, own in uses.items() for use in own], columns=_USE_COLUMNS)


def bottlenecks_object(found: Bottlenecks) -> JsonObject:
    """Bottlenecks as a JSON object."""
    run = found.run
    return {
        "run": run.run,
        "workload": run.workload,
        "hardware": run.core,
        "objective": run.objective,
        "model": run.model,
        "layer": found.layer,
        "made_of": dict(found.made_of),
        ENERGY_PJ: run.energy_pj,
        LATENCY_CYCLES: run.latency_cycles,
        "shares": [one._asdict() for one in found.shares],
        "network_limit": _limit_object(found, found.network_limit),
        "limits": {name: _limit_object(found, limit, name) for name, limit in found.limits.items()},
        "limits_not_known": found.unknown,
        "ports": [{key: value for key, value in row.items() if value is not None} for row in _port_rows(found)],
        "roofline": None if found.roofline is None else found.roofline.as_object(),
        **({"array_use": found.array.as_object()} if found.array else {}),
        **({"latency_chain": _chain_rows(found)} if found.chain else {}),
        **({"several_cores": found.cores.as_object()} if found.cores else {}),
    }


def _chain_rows(found: Bottlenecks) -> list[JsonObject]:
    """Rows of the latency chain of a run on several cores. Each row has the cycles of one combination of activity,
    place and layer. The place is the core that computes, or the kind of the data that move. Rows are in the order in
    which their combinations first occur in the chain.
    """
    sums: dict[tuple[str, str, str], int] = {}
    for part in found.chain:
        key = (part.what, part.place, part.layer)
        sums[key] = sums.get(key, 0) + part.cycles
    return [{"what": what, "place": place, "layer": layer, "cycles": n} for (what, place, layer), n in sums.items()]


def layer_shares(layer: str, record: LayerRecord) -> Iterator[Share]:
    """Parts of the energy of a layer, then parts of its latency, each in the order in which they are summed. Parts that
    are 0 are left out.
    """
    for term, energy in other_energies_pj(record).items():
        yield from _share(ENERGY, layer, term, energy)
    for memory, energies in memory_energies_pj(record).items():
        for (operand, direction), energy in energies.items():
            yield from _share(ENERGY, layer, ACCESSES, energy, memory, "", operand, direction)
    for term, cycles in record.latency_breakdown_cycles.items():
        port = waited_for(record) if term == STALL else None
        yield from _share(LATENCY, layer, term, cycles, *((port.memory, port.port) if port else ()))


def waited_for(record: LayerRecord) -> PortRecord | None:
    """Port that causes the temporal stall of the layer: the port whose stall has the same length. If there are several
    such ports, the first in the hardware file is returned. None if the layer has no temporal stall, or if no port has a
    stall of this length.
    """
    stall = record.latency_breakdown_cycles.get(STALL, 0)
    return next((port for port in record.ports if stall > 0 and port.stall_slack_cycles == stall), None)


def entry_shares(entries: Mapping[LedgerPlace, float]) -> Iterator[Share]:
    """Parts of the energy and the latency of a run, one for each number in the ledger of the run. `entries` has these
    numbers by key.
    """
    for quantity in QUANTITIES:
        for place, value in entries.items():
            if place.quantity == quantity:
                yield from _share(quantity, place.layer, place.term, value, place.memory, "", place.part)


def _share(
    quantity: str,
    layer: str,
    term: str,
    value: float,
    memory: str = "",
    port: str = "",
    operand: str = "",
    direction: str = "",
) -> Iterator[Share]:
    if value:
        yield Share(quantity, layer, term, memory, port, operand, direction, value)


def uses_of(placed: Sequence[PlacedLayer]) -> dict[str, tuple[PortUse, ...]]:
    """Use of each port while a layer runs, by layer name."""
    return {layer.name: tuple(map(_use, layer.record.ports)) for layer in placed}


def _use(port: PortRecord) -> PortUse:
    busy = sum(one.real_cycles * one.period_count for one in port.activities)
    return PortUse(port.memory, port.port, port.stall_slack_cycles, busy)


def _limits(placed: Sequence[PlacedLayer], core: Core, network: Workload) -> tuple[list[PortLimit], PortLimit]:
    """Pair (limit of each layer, limit of all layers together). For equal layers, the limit is computed once."""
    records = {layer.record_index: layer.of_one for layer in placed}
    mappings = dict(zip(records, recorded_mappings(list(records.values()), core, network), strict=True))
    found = {index: port_limit(mapping, core) for index, mapping in mappings.items()}
    limits = [found[layer.record_index].times(layer.repeats) for layer in placed]
    return limits, limit_of_network(limits, core, [(mappings[one.record_index], one.repeats) for one in placed])


def _port_rows(found: Bottlenecks) -> Iterator[JsonObject]:
    for layer, uses in found.uses.items():
        limit = found.limits.get(layer)
        ranks = {} if limit is None else {one.ports[0]: place for place, one in enumerate(limit.ports, 1)}
        for use in uses:
            row = _use_row(layer, use)
            key = next((name for name in ranks if name == (use.memory, use.port)), None)
            if limit is None or key is None:
                yield row | {"wider_latency_cycles": None, "gain_cycles": None, "rank": None}
                continue
            wider = limit.with_wider(key)
            yield row | {
                "wider_latency_cycles": wider,
                "gain_cycles": limit.latency_cycles - wider,
                "rank": ranks[key],
            }


def _use_row(layer: str, use: PortUse) -> JsonObject:
    return dict(zip(_USE_COLUMNS, (layer, use.memory, use.port, use.busy_cycles, use.stall_cycles), strict=True))


def _limit_object(found: Bottlenecks, limit: PortLimit | None, layer: str = "") -> dict[str, Any] | None:
    if limit is None:
        return None
    named = {"port": limit.limiting, "runner_up": limit.runner_up, "together": limit.together}
    told = {
        key: one
        and {
            "ports": [{"memory": port.memory, "port": port.port} for port in one.ports],
            "wider_latency_cycles": one.latency_cycles,
            "gain_cycles": limit.gain_cycles(one),
        }
        for key, one in named.items()
    }
    rule = {"limited_by": found.limited_by(layer), "is_limited": limit.is_limited}
    rule |= {"cycles_by_kind": found.kinds(layer).as_object(), "cycles_by_cause": found.causes(layer).as_object()}
    return {LATENCY_CYCLES: limit.latency_cycles, **rule, **told, "ties": [one.name for one in limit.ties[1:]]}
