"""Verdicts of all verbs and the page on one layer, checked against brute force by the plain model.

The number beside each name in a verdict is that of the plain model, and no rival has a larger number. Sets are the
smallest that help, and no two places contradict each other.
"""

import itertools
import math
import random
import re
from dataclasses import replace
from functools import cache
from typing import Any

from tilewright.cost.ledger import LATENCY_TERMS
from tilewright.designs.advice import LEAST_GAIN, Advice, Advices, together
from tilewright.designs.advice_text import advice_text
from tilewright.designs.changes import BANDWIDTH, FileChange
from tilewright.designs.held_mappings import Outcome
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.results.bottlenecks import Bottlenecks, bottlenecks_object, bottlenecks_of
from tilewright.results.bottlenecks_figure import _subtitle
from tilewright.results.bottlenecks_text import bottlenecks_text
from tilewright.results.page.columns import cause_text
from tilewright.results.page.one_core import _limit
from tilewright.results.port_limits import LEAST_SHARE, PortName
from tilewright.results.recorded_mappings import recorded_mappings
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import ledger_of_layers
from tilewright.results.text_tables import share_text
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.tokens.bound import NOTABLE_GAIN, bound_text, step_limit
from tilewright.tokens.layer_figures import kinds_of
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer

from tests.plain.laws import Mapped, random_mapping
from tests.plain.port_limits import plain_latency
from tests.plain.problems import Problem, random_problem
from tests.plain.tally import Tally

KINDS = ("array", "spatial stall", "moving data")
MOST_SIZE = 3
"""Sets of up to this many ports are all tried."""
UNFOLDED = 34
"""Largest number of characters of a table cell that are printed on one line."""
BITS = (("W", 8), ("I", 8), ("O", 8), ("O_final", 8))
OPERANDS = (("O", ("D", "K")), ("I", ("D", "C")), ("W", ("C", "K")))
LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))


def try_verdicts(seed: int) -> Tally:
    """Check the verdicts on a random layer, mapping and core; some have limits that tie."""
    tally = Tally()
    mapped = _mapped(seed)
    one = Said(mapped)
    tally.counts["runs"] += 1
    tally.wrong += [f"seed {seed}: {text}" for text in one.wrong()]
    for name, is_so in one.kinds_of_run().items():
        tally.counts[name] += is_so
    return tally


def _mapped(seed: int) -> Mapped:
    """A random problem with a mapping that fits; one seed in five has equally narrow ports, so that two limits tie."""
    rng = random.Random(seed)
    while True:
        problem = random_problem(rng.randrange(2**32))
        if seed % 5 == 1:
            problem = replace(problem, core=_alike(problem.core, rng.choice((4, 8, 16))))
        elif seed % 5 in (2, 3):
            problem = _tied(rng, problem.model)
        mapped = random_mapping(rng, problem, problem.model)
        if mapped is not None and mapped.cost.latency_cycles > 0:
            return mapped


def _tied(rng: random.Random, model: str) -> Problem:
    """A matrix product with a memory and a port for each operand.

    The ports of both inputs are equally wide, and half of the array may be idle.
    """
    side = rng.choice((1, 1, 2, 4))  # of 1: each number of both inputs is new in each cycle
    sizes = (("D", side), ("K", side), ("C", rng.choice((3, 4, 6, 8, 12))))
    layer = Layer("gemm", "Gemm", OPERANDS, sizes, (), BITS)
    width = rng.choice((1, 2, 4, 64))
    widths = {"I1": width, "I2": width, "O": rng.choice((width, 64))}
    memories = []
    for operand, wide in widths.items():
        moves = ("tl", "fl", "th", "fh") if operand == "O" else ("tl", "fh")
        port = Port("rw", "read_write", min(wide, 8), wide, tuple((operand, one) for one in moves))
        memories.append(Memory(f"m{operand}", 10**6, 1.0, 2.0, (operand,), (port,), ("D1",)))
    core = Core("one", OperationalArray((("D1", rng.choice((1, 2))),), 0.5), tuple(memories))
    return Problem("tied", layer, core, LINKS, (), model)


def _alike(core: Core, width: int) -> Core:
    memories = []
    for memory in core.memories:
        ports = tuple(replace(port, bandwidth_min_bits=width, bandwidth_max_bits=width) for port in memory.ports)
        memories.append(replace(memory, ports=ports))
    return replace(core, memories=tuple(memories))


class Said:
    """Statements of verbs and the page on a layer, and the true values."""

    def __init__(self, mapped: Mapped) -> None:
        self.mapped = mapped
        problem = mapped.problem
        self.core = problem.core
        given = (problem.layer, self.core, problem.links, problem.unrolling, mapped.order)
        self.record = evaluate(*given, SearchOptions(model=mapped.model), mapped.boundaries)
        node = WorkloadNode(0, problem.layer.name, problem.layer.operator_type, problem.layer)
        self.network = Workload("net", (node,))
        placed = layers_in_order([self.record])
        ledger = ledger_of_layers("run", [self.record], None, {})
        self.found: Bottlenecks = bottlenecks_of(ledger, placed, self.core, self.network)
        self.latency = float(mapped.cost.latency_cycles)
        self.ports = [
            (memory.name, port.name)
            for memory in self.core.memories
            for place, port in enumerate(memory.ports)
            if any(index == place for index in memory.port_of.values())
        ]
        self.saved = cache(self._saved)

    def _saved(self, ports: frozenset[tuple[str, str]]) -> float:
        """Cycles that doubling the width of some ports saves, by the plain model."""
        memories = []
        for memory in self.core.memories:
            wide = tuple(
                replace(port, bandwidth_max_bits=2 * port.bandwidth_max_bits)
                if (memory.name, port.name) in ports
                else port
                for port in memory.ports
            )
            memories.append(replace(memory, ports=wide))
        return self.latency - plain_latency(self.mapped, replace(self.core, memories=tuple(memories)))

    @property
    def singles(self) -> dict[str, float]:
        """Port -> cycles that doubling its width saves."""
        return {" ".join(port): self.saved(frozenset((port,))) for port in self.ports}

    def smallest(self, least: float) -> tuple[int, float] | None:
        """(size of the smallest sets of two or more ports that save at least `least`, most that such a set saves).

        None if no set of at most MOST_SIZE ports saves that much.
        """
        for size in range(2, min(MOST_SIZE, len(self.ports)) + 1):
            best = max(self.saved(frozenset(chosen)) for chosen in itertools.combinations(self.ports, size))
            if best >= least:
                return size, best
        return None

    @property
    def cycles_by_kind(self) -> dict[str, float]:
        """Cycles by kind, from the parts of the plain model."""
        parts = {name: float(cycles) for name, cycles in self.mapped.cost.parts.items() if name in LATENCY_TERMS}
        array, idle = parts.get("ideal", 0.0), parts.get("spatial_stall", 0.0)
        return dict(zip(KINDS, (array, idle, self.latency - array - idle), strict=True))

    def kinds_of_run(self) -> dict[str, bool]:
        """Kinds of runs that are counted -> whether the run is of this kind."""
        limit = self.found.network_limit
        assert limit is not None
        ties = len(limit.ties) > 1 or limit.together is not None
        alike = len(self.found.kinds().alike) > 1 or len(self.found.causes().alike) > 1
        return {
            "two limits tie": ties or alike,
            "ports tie or limit together": ties,
            "kinds or causes tie": alike,
            "no single change helps": not limit.is_limited_by_one,
            "together": limit.together is not None,
        }

    def wrong(self) -> list[str]:
        """Errors in all verdicts."""
        return [*self._of_causes(), *self._of_ports(), *self._of_tokens(), *self._of_advice()]

    def _of_causes(self) -> list[str]:
        """Return faults of the shown limit and of the kind with most cycles.

        Both are shown in `explain`, its JSON, the figure, the repr and the page.
        """
        wrong, found = [], self.found
        data, page = bottlenecks_object(found), _limit(bottlenecks_object(found), found)
        kinds = self.cycles_by_kind
        most = max(kinds.values())
        text = found.limited_by()
        named = re.match(r"(.+?) (<?[\d.]+%)(?: each)?(?=$|[;:])", text)
        if named is None:
            return [f"no number in {text!r}"]
        for name in named[1].split(" and "):
            if share_text(kinds[name], self.latency) != named[2] or named[2] != share_text(most, self.latency):
                wrong.append(f"{text!r}, kinds {kinds}")
        shown = [name for name in KINDS if share_text(kinds[name], self.latency) == named[2] and kinds[name] > 0]
        if set(shown) != set(named[1].split(" and ")):
            wrong.append(f"{text!r} does not name all of {shown}")
        told, layer = bottlenecks_text(found), self.record.layer.name
        line = next(line for line in page["lines"] if line.startswith("Most cycles go to: "))
        chart: dict[str, float] = {}
        for share in found.shares:
            if share.quantity == "latency_cycles":
                cause = share.term if not share.port else f"{share.term}|{share.memory} {share.port}"
                chart[cause] = chart.get(cause, 0.0) + share.value
        if f" {share_text(max(chart.values()), self.latency)}" not in line:
            wrong.append(f"{line!r} beside a chart with {chart}")
        alone = bottlenecks_text(found.of_layer(layer))
        places = {
            "explain --layer": alone,
            "page": "\n".join(page["lines"]),
            "figure": _subtitle(found),
            "repr": repr(found),
        }
        wrong += [f"{place} does not say {text!r}" for place, said in places.items() if text not in said]
        if len(text) <= UNFOLDED and text not in told:
            wrong.append(f"explain does not say {text!r}")
        if not data["network_limit"]["limited_by"] == cause_text(data["network_limit"]) == page["cause"] == text:
            wrong.append(f"JSON and page say other than {text!r}")
        return wrong

    def _of_ports(self) -> list[str]:
        """Errors on the port that limits, or on ports that limit together."""
        wrong, limit = [], self.found.network_limit
        assert limit is not None
        singles, room = self.singles, 1e-9 * self.latency
        best = max(singles.values(), default=0.0)
        named = limit.named
        gain = limit.gain_cycles(named) if named else 0.0
        if named is not None and abs(gain - self.saved(frozenset(map(tuple, named.ports)))) > room:
            wrong.append(f"{named.name} saves {self.saved(frozenset(map(tuple, named.ports)))}, not {gain}")
        least = LEAST_SHARE * self.latency
        if best >= least:
            if named is None or len(named.ports) > 1 or gain < best - room:
                wrong.append(f"{named} is named, a port alone saves {best}")
        else:
            wrong += self._of_set(named.ports if named else (), gain, least, best)
        text, share = self.found.limited_by(), share_text(gain, self.latency)
        if limit.is_limited and (named is None or not text.endswith(f"-{share}")):
            wrong.append(f"{text!r} does not end with {share}")
        return wrong

    def _of_set(self, ports: tuple[PortName, ...], gain: float, least: float, best: float) -> list[str]:
        """Errors in the named set of ports, or its absence; a set is named if no port alone saves enough."""
        smallest = self.smallest(least)
        if smallest is None:
            return [f"{ports} together, {gain}"] if len(ports) in range(2, MOST_SIZE + 1) and gain >= least else []
        if (len(ports), gain) != smallest:
            return [
                f"{ports} save {gain}, the smallest set has {smallest[0]} ports and saves {smallest[1]}; alone {best}"
            ]
        return []

    def _of_tokens(self) -> list[str]:
        """Errors on the limit of a step that has only this layer."""
        found = self.found.network_limit
        assert found is not None
        widths = {one.name: max(0.0, found.gain_cycles(one) / self.latency) for one in found.ports}
        by_name = {" ".join(port): port for port in self.ports}

        def saved_by(names: tuple[str, ...]) -> float:
            return self.saved(frozenset(by_name[name] for name in names)) / self.latency

        kinds = dict(zip((*KINDS, "calls and commands"), kinds_of(self.record), strict=True))
        row = step_limit(self.latency, widths, saved_by, kinds).row()
        text, singles = bound_text(row), self.singles
        best, least = max(singles.values(), default=0.0), NOTABLE_GAIN * self.latency
        wrong = []
        busy = self.cycles_by_kind["array"] / self.latency
        if not math.isclose(row["array_busy"], busy, abs_tol=1e-12):
            wrong.append(f"tokens: array busy {row['array_busy']}, not {busy}")
        parts = tuple(row["bound_by_parts"].split(" and ")) if row["bound_by_parts"] else ()
        if parts:
            true = saved_by(parts)
            if not math.isclose(true, row["bound_by_share"]) or not text.endswith(f"-{row['bound_by_share']:.1%}"):
                wrong.append(f"tokens: {text!r}, true are {true}")
        if best >= least * (1 + 1e-12) and (len(parts) != 1 or singles[parts[0]] < best - 1e-9 * self.latency):
            wrong.append(f"tokens: {text!r}, a port alone saves {best}")
        if best < least:
            smallest = self.smallest(least * (1 - 1e-12))
            if smallest is not None and len(parts) != smallest[0]:
                wrong.append(f"tokens: {text!r}, {smallest[0]} ports save {smallest[1]}")
            if not parts:
                kind = {"array": "compute"}.get(max(kinds, key=lambda name: kinds[name])) or max(
                    kinds, key=kinds.__getitem__
                )
                if kind not in row["bound_by"]:
                    wrong.append(f"tokens: {text!r} of {kinds}")
        return wrong

    def _of_advice(self) -> list[str]:
        """Errors on advised changes of the widths of ports."""
        (recorded,) = recorded_mappings([self.record], self.core, self.network)
        now = Outcome.of([self.record])
        changes = [_change(port) for port in self.ports]

        def on_changed(chosen: Any) -> Outcome:
            saved = self.saved(frozenset(tuple(one.path[1:3]) for one in chosen))
            return Outcome(now.energy_pj, self.latency - saved)

        assert recorded.record is self.record
        found = [Advice(one, on_changed((one,)), None) for one in changes]
        made = Advices.of("latency", now, found, searched=False)
        made = replace(made, together=None if made.helpful else together(made, changes, on_changed))
        text, singles = advice_text(made), self.singles
        best, least = max(singles.values(), default=0.0), LEAST_GAIN * self.latency
        if (best >= least * (1 + 1e-9)) != bool(made.helpful) and abs(best - least) > 1e-9 * self.latency:
            return [f"advise: {text!r}, a port saves {best} of {self.latency}"]
        if made.helpful:
            first = made.helpful[0][1].change.key
            return [] if singles[first] >= best - 1e-9 else [f"advise: {first} is first, {best} is more"]
        smallest = self.smallest(least)
        if smallest is None:
            return []
        if made.together is None or len(made.together.changes) != smallest[0]:
            return [f"advise: {text!r}, {smallest[0]} ports save {smallest[1]}"]
        return [] if "Together, these changes help" in text else [f"advise: {text!r} is silent"]


def _change(port: tuple[str, str]) -> FileChange:
    return FileChange(BANDWIDTH, ("memories", *port), " ".join(port), "h.yaml", 1, 1, 2, more=True)
