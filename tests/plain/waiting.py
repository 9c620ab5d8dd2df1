"""A second implementation of waiting for calls, commands and requests (docs/model/waiting.md), in exact fractions.

Elements are counted one by one, and rows are laid out in memory, so that nothing is shared with the kernels.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

Loops = tuple[tuple[str, int], ...]
TERMS = ("call_waiting", "command_waiting", "request_waiting")


@dataclass(frozen=True)
class PlainWaiting:
    """A mapping on a core with keys for waiting. Spatial factors must be whole."""

    layer: Layer
    core: Core
    links: dict[str, str]
    unrolling: Unrolling
    order: Loops
    below: dict[str, int]
    """Operand -> number of loops that it keeps below its outermost memory."""
    resident: dict[str, int]
    """Operand -> number of loops in `below`, plus the loops directly above them that leave its data in place."""
    phases: int = 1
    loading: int = 0
    """On-loading and off-loading: cycles of the other terms in which the array does not compute."""

    @property
    def numbers(self) -> dict[str, Any]:
        """Keys of the core, of its array and of its memories -> values."""
        found = dict(self.core.figures) | dict(self.core.operational_array.figures)
        for memory in self.core.memories:
            found |= dict(memory.figures)
        return found

    def number(self, name: str) -> Fraction:
        """A key; 0 if the file does not have it."""
        return Fraction(self.numbers.get(name, 0))

    def memory(self) -> Any:
        """The memory whose requests take time; None if there is none."""
        return next((one for one in self.core.memories if "request_latency_cycles" in dict(one.figures)), None)

    def operands(self) -> list[str]:
        """Operands whose outermost memory has requests; the output comes first."""
        memory = self.memory()
        return [] if memory is None else [o for o in self.layer.operands if self.links[o] in memory.operands]

    def sizes(self, last: int) -> dict[str, int]:
        """Iterations of each dimension in the spatial loops and the first loops of the order."""
        found = dict.fromkeys(self.layer.size_of, 1)
        for _, factors in self.unrolling:
            for name, factor in factors:
                found[name] *= factor
        for name, size in self.order[:last]:
            found[name] *= size
        return found

    def elements(self, operand: str, last: int) -> int:
        """Number of different elements of an operand in a tile, counted one by one."""
        sizes, count = self.sizes(last), 1
        relations = {one.data_dimension: one for one in self.layer.relations}
        for name in dict(self.layer.operand_dimensions)[operand]:
            if name not in relations:
                count *= sizes[name]
                continue
            (d1, c1), (d2, c2) = relations[name].terms
            touched = {c1 * a + c2 * b for a in range(sizes.get(d1, 1)) for b in range(sizes.get(d2, 1))}
            size = self.layer.size_of
            padded = {c1 * a + c2 * b for a in range(size.get(d1, 1)) for b in range(size.get(d2, 1))}
            inside = len(padded) - sum(dict(self.layer.padding).get(name, (0, 0)))
            count *= min(len(touched), dict(self.layer.data_dimension_sizes).get(name, inside))
        return count

    def changes(self, operand: str, name: str) -> bool:
        """True if a loop changes the data of an operand."""
        windows = {one.data_dimension: {d for d, _ in one.terms} for one in self.layer.relations}
        return any(name == d or name in windows.get(d, ()) for d in dict(self.layer.operand_dimensions)[operand])

    def bits(self, operand: str) -> int:
        """Bits of an element in the outermost memory."""
        return self.layer.bits_of["O_final" if operand == self.layer.operands[0] else operand]

    def calls(self) -> int:
        """Number of loops in a call."""
        return min((n for n in self.below.values() if n >= 0), default=len(self.order))

    def first(self, operand: str) -> int:
        """Number of innermost loops that run between two loads of an operand."""
        has_calls = "call_cycles" in self.numbers or "calls_in_flight" in self.numbers
        return self.calls() if has_calls else self.resident[operand]

    def latency(self, operand: str) -> Fraction:
        """Average latency over all loads; each load is traced back to the previous one of the same data."""
        memory, first = self.memory(), self.first(operand)
        is_output = operand == self.layer.operands[0]
        if not memory.caches:
            return self.number("request_latency_cycles")
        outer = self.order[first:]
        total, loads = Fraction(0), 0
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        for point in itertools.product(*(range(size) for _, size in reversed(outer))):
            values = tuple(reversed(point))
            loads += 1
            # The last use of the data, or of the cache line that has them: since then, the loops up to the outermost
            # one that has changed have touched other data.
            place = self.place(operand, first, values)
            before = seen.get(place)
            step = None if before is None else max(i for i in range(len(outer)) if before[i] != values[i])
            seen[place] = values
            touched = first + (len(outer) if step is None else step)
            footprint = sum(self.elements(o, touched) * self.bits(o) for o in self.operands())
            level = next((k for k, cache in enumerate(memory.caches) if footprint <= cache.size_bits), None)
            if is_output and level == 0:
                continue
            total += (
                self.number("request_latency_cycles")
                if level is None
                else Fraction(memory.caches[level].request_latency_cycles)
            )
        return total / loads

    def place(self, operand: str, first: int, values: tuple[int, ...]) -> tuple[int, ...]:
        """The data that a load fetches, as values of the loops that change them. A row counts as the number of its
        line.
        """
        outer, line = self.order[first:], int(self.number("line_bits"))
        _, row, _ = self.row(operand)
        name = self.row_dimension(operand)
        place, position, stride = [], 0, 1
        for (loop, size), value in zip(outer, values, strict=True):
            if line and loop == name:
                position, stride = position + value * stride, stride * size
            elif self.changes(operand, loop):
                place.append(value)
        return (*place, position * row // line if line else position)

    def row_dimension(self, operand: str) -> str | None:
        """Dimension along which neighbouring elements of an operand are adjacent in memory; None if it is unknown."""
        own = dict(self.layer.operand_dimensions)[operand]
        return next((d for d in self.memory().row_dimensions if d in own and d in self.layer.size_of), None)

    def lines_are_whole(self) -> bool:
        """True if loops over rows fill whole lines, one after the other. In other cases, the kernel counts an
        average.
        """
        line = int(self.number("line_bits"))
        for operand in self.operands() if line else ():
            _, row, _ = self.row(operand)
            for loop, size in self.order[self.first(operand) :]:
                if loop == self.row_dimension(operand) and row < line:
                    longer = size * row
                    if line % row or (line % longer if longer < line else longer % line):
                        return False
                    row *= size
        return True

    def row(self, operand: str) -> tuple[Fraction, int, int]:
        """(rows of a tile, bits of a row of the tile, bits of a row of the tensor)."""
        first = self.first(operand)
        elements, bits = self.elements(operand, first), self.bits(operand)
        name = self.row_dimension(operand)
        if name is None:
            return Fraction(1), elements * bits, elements * bits
        held, whole = self.sizes(first)[name], self.sizes(len(self.order))[name]
        return Fraction(elements, held), held * bits, whole * bits

    @staticmethod
    def words(row: int, whole: int, width: int) -> Fraction:
        """Average number of aligned words that a row touches, over all addresses that occur."""
        step = math.gcd(row, whole)
        starts = {(step * i) % width for i in range(width // math.gcd(step, width))}
        return Fraction(sum(-(-(start + row) // width) for start in starts), len(starts))

    def requests(self) -> tuple[Fraction, Fraction, Fraction]:
        """(cycles of all requests, latency of the first load, number of requests)."""
        answered, port, pages, most = Fraction(0), Fraction(0), Fraction(0), Fraction(0)
        sent = Fraction(0)
        for operand in self.operands():
            is_output = operand == self.layer.operands[0]
            rows, row, whole = self.row(operand)
            outer = self.order[self.first(operand) :]
            loads = math.prod(size for name, size in outer if not is_output or self.changes(operand, name))
            latency = self.latency(operand)
            count = loads * rows
            bursts = count * self.words(row, whole, int(self.number("burst_bits")))
            twice = 2 if is_output and self.memory().caches else 1
            answered += twice * bursts * latency / self.number("requests_in_flight")
            if is_output and (answer := self.number("store_latency_cycles")):
                width = int(self.number("store_burst_bits") or self.number("burst_bits"))
                stores = count * self.words(row, whole, width)
                answered += stores * answer / self.number("requests_in_flight")
                sent += stores
                continue
            sent += bursts
            if is_output:
                continue
            serving = [p for p in self.memory().ports if (self.links[operand], "tl") in p.allocation][-1:]
            port += sum(count * self.words(row, whole, p.bandwidth_max_bits) for p in serving)
            if page := self.number("page_bits"):
                pages += count * min(Fraction(1), Fraction(whole) / page) * self.number("page_cycles")
            most = max(most, latency)
        return max(answered + self.number("word_cycles") * port, port) + pages, most, sent

    def commands(self) -> tuple[Fraction, Fraction, Fraction]:
        """(cycles of the array, cycles of commands in flight, commands) of all calls, counted command by command."""
        inner = self.order[: self.calls()]
        total = Fraction(math.prod(size for _, size in inner) * self.phases)
        longest = int(self.number("command_iterations"))
        if not longest:
            return total, Fraction(0), Fraction(1)
        named = self.core.operational_array.command_dimensions
        run = math.prod(size for name, size in inner if name in named) if named else (inner[0][1] if inner else 1)
        left, busy, count = run, Fraction(0), 0
        while left > 0:
            busy += max(self.number("least_command_cycles"), Fraction(min(left, longest) * self.phases))
            left, count = left - longest, count + 1
        runs = Fraction(math.prod(size for _, size in inner), run)
        in_flight = self.number("commands_in_flight")
        waiting = runs * (count * self.number("command_latency_cycles") + busy) / in_flight if in_flight else 0
        return runs * busy, Fraction(waiting), runs * count

    def limit(self) -> tuple[Fraction, str]:
        """(largest limit of the latency, its term)."""
        count = math.prod(size for _, size in self.order[self.calls() :])
        array, waiting, commands = self.commands()
        requests, latency, sent = self.requests()
        queued = self.number("queued_commands")
        limits = {"request_waiting": requests}
        has_calls = "call_cycles" in self.numbers or "calls_in_flight" in self.numbers
        if self.number("command_iterations"):
            limits["command_waiting"] = count * max(array, waiting) + (0 if has_calls else self.loading)
        extra = Fraction(0)
        if has_calls:
            limits["call_waiting"] = count * self.number("call_cycles")
            if in_flight := self.number("calls_in_flight"):
                one = self.number("call_cycles") + latency + self.number("command_latency_cycles")
                chain = (count * (one + max(array, waiting)) + requests) / in_flight
                if queued:
                    # Each call is under way until its last commands are queued and its last requests are sent.
                    open_commands, all_sent = max(Fraction(0), commands - queued), Fraction(0)
                    if sent:
                        of_call = sent / count
                        open_requests = max(Fraction(0), of_call - self.number("requests_in_flight"))
                        all_sent = requests / count * open_requests / of_call
                    each = self.number("call_cycles") + max(array, waiting) * open_commands / commands + all_sent
                    chain = count * each / in_flight
                limits["call_waiting"] = max(limits["call_waiting"], chain)
            extra = latency + requests / count
        term = max(limits, key=lambda name: (limits[name], -list(limits).index(name)))
        if has_calls and queued and term == "request_waiting":
            extra = latency + max(array, waiting)
        return limits[term] + extra, term

    def added(self, latency: float) -> dict[str, Fraction]:
        """Cycles that each term adds to the latency of the other terms, before rounding up."""
        limit, term = self.limit()
        found = {name: max(Fraction(0), limit - Fraction(latency)) if name == term else Fraction(0) for name in TERMS}
        found["call_waiting"] += math.ceil(self.number("start_cycles"))
        return found
