"""Check of a certificate: lower bounds computed again from a problem and weights, in exact fractions and plain Python.

The check shares no code with the computation of the bounds. docs/proofs/bounds.md proves that the numbers are lower
bounds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, SchedulingProblem

_ROUNDING = Fraction(1, 10**9)
"""Share by which a claimed energy bound may exceed the exact sum, because floating-point sums are not exact."""
Path = tuple[int, ...] | None
"""Links of a path, each once; None if there is no path."""


def certificate_faults(problem: SchedulingProblem, allowed: Booleans, certificate: Mapping[str, Any]) -> list[str]:
    """Messages about the rejected claims of a certificate.

    The certificate has one claim for each rule. A claim is a lower bound over all allocations that the array `allowed`
    (an entry for each CN and core) permits. The check computes the bound of the rule again, and rejects a claim that
    exceeds the computed bound. For the rules `core_work` and `link_traffic`, the bound is computed from the weights in
    the claim. A claim with an unknown rule or a negative weight is rejected, too.
    """
    return list(_faults(_Exact(problem, allowed), certificate))


def _faults(exact: "_Exact", certificate: Mapping[str, Any]) -> Iterator[str]:
    for rule, claim in certificate.items():
        if rule == "energy":
            found = exact.energy_pj()
            if Fraction(claim["pj"]) > found * (1 + _ROUNDING):
                yield (
                    f"energy: the certificate claims {claim['pj']} pJ, but the bound computed again is only"
                    f" {float(found)} pJ"
                )
            continue
        if any(weight < 0 for pair in claim.get("cores", claim.get("links", ())) for weight in pair[1:]):
            yield f"{rule}: a weight is negative"
            continue
        if rule == "critical_path":
            cycles = exact.critical_path()
        elif rule == "off_chip_traffic":
            cycles = max((exact.work({}, [int(k == one) for k in range(3)]) for one in range(3)), default=Fraction(0))
        elif rule == "core_work":
            cycles = exact.work(dict(claim["cores"]), claim["traffic"])
        elif rule == "link_traffic":
            cycles = exact.links(dict(claim["links"]))
        else:
            yield f"{rule}: is not a known rule"
            continue
        if claim["cycles"] > math.ceil(cycles):
            yield (
                f"{rule}: the certificate claims {claim['cycles']} cycles, but the bound computed again is only"
                f" {float(cycles)} cycles"
            )


class _Exact:
    """Exact bounds of a problem, computed with integers and fractions."""

    def __init__(self, problem: SchedulingProblem, allowed: Booleans) -> None:
        self.graph, self.costs, self.system = problem.graph, problem.costs, problem.system
        self.off = problem.system.off_chip_core
        self.cores_of = [
            [core for core, may in enumerate(row) if may and self.runs(cn, core)]
            for cn, row in enumerate(allowed.tolist())
        ]
        self.memory = problem.system.core_memory.tolist()
        self.width = problem.system.link_bits_per_cycle.tolist()
        self.bits = problem.graph.piece_bits.tolist()
        self.producer = problem.graph.piece_producer.tolist()
        starts = problem.graph.need_start.tolist()
        pieces, operands = problem.graph.need_piece.tolist(), problem.graph.need_operand.tolist()
        self.needs = [list(zip(pieces[a:b], operands[a:b], strict=True)) for a, b in pairwise(starts)]

    def runs(self, cn: int, core: int) -> bool:
        """True if the cost table has a runtime for the CN on the core."""
        return core != self.off and int(self.costs.runtime_cycles[self.graph.cost_row[cn], core]) >= 1

    def streamed(self, cn: int, core: int) -> list[int]:
        """Bits that the CN streams on the core (one entry for each operand)."""
        bits: list[int] = self.costs.stream_bits[self.graph.cost_row[cn], core].tolist()
        return bits

    def never_streams(self, cn: int, operand: int) -> bool:
        """True if the operand of the CN streams on no allowed core."""
        return all(self.streamed(cn, core)[operand] == 0 for core in self.cores_of[cn])

    def path(self, source: int, target: int) -> Path:
        """Path from one core to another; None if there is no path. If cores forward constants, a path from the off-chip
        core has only the links that all such paths share.
        """
        if source == target:
            return ()
        if not self.system.path_exists[source * self.system.core_count + target]:
            return None
        links = tuple(dict.fromkeys(self.system.path(source, target).tolist()))
        if self.system.forwards_constants and source == self.off:
            # Another core can send the data, so only links on every path from the off-chip core are certain.
            return tuple(link for link in links if link in self._certain)
        return links

    @cached_property
    def _certain(self) -> set[int]:
        """Links that are on all paths from the off-chip core."""
        count = self.system.core_count
        reached = [
            core for core in range(count) if core != self.off and self.system.path_exists[self.off * count + core]
        ]
        return set.intersection(*(set(self.system.path(self.off, core).tolist()) for core in reached))

    def runtime(self, cn: int, core: int) -> int:
        """Runtime of a CN in cycles: the larger of its runtime in the cost table and the time that its streams take at
        the full width of their links.
        """
        load: dict[int, int] = {}
        for operand, bits in enumerate(self.streamed(cn, core)):
            ends = (core, self.off) if operand == OUTPUT_OPERAND else (self.off, core)
            for link in (self.path(*ends) or ()) if bits else ():
                load[link] = load.get(link, 0) + bits
        own = int(self.costs.runtime_cycles[self.graph.cost_row[cn], core])
        streaming: list[int] = [-(-bits // self.width[link]) for link, bits in load.items()]
        return max([own, *streaming])

    @cached_property
    def rates(self) -> list[Fraction | None]:
        """Largest rates in bits per cycle of three kinds of traffic: from the off-chip memory, to the off-chip memory,
        and both together. A rate is None if neither a link nor a memory limits it.
        """
        others = [core for core in range(self.system.core_count) if core != self.off]
        reading = [path for core in others if (path := self.path(self.off, core)) is not None]
        writing = [path for core in others if (path := self.path(core, self.off)) is not None]
        found: list[Fraction | None] = []
        for inward, outward in ((reading, []), ([], writing), (reading, writing)):
            paths = inward + outward
            if not paths or not all(paths):
                found.append(None)
                continue
            cuts = [{link} for link in set.intersection(*(set(path) for path in paths))]
            cuts += [{p[a] for p in inward} | {p[b] for p in outward} for a, b in ((0, -1), (-1, 0))]
            found.append(Fraction(min(sum(self.width[link] for link in cut) for cut in cuts)))
        return found

    def _over(self, bits: int, rate: Fraction | None) -> Fraction:
        return Fraction(0) if rate is None else bits / rate

    def release(self, cn: int) -> int:
        """Smallest number of cycles from the start of the schedule until the constants of a CN are on chip. Constants
        that the CN streams on some allowed core do not count.
        """
        pieces = {p for p, o in self.needs[cn] if self.producer[p] < 0 and self.never_streams(cn, o)}
        return math.ceil(self._over(sum(self.bits[piece] for piece in pieces), self.rates[0]))

    def tail(self, cn: int) -> int:
        """Smallest number of cycles from the end of a CN until its results are off-chip. Results that the CN streams on
        some allowed core do not count.
        """
        bits = sum(self.bits[piece] for piece in self.results if self.producer[piece] == cn)
        return math.ceil(self._over(bits, self.rates[1]))

    @cached_property
    def results(self) -> list[int]:
        """Results of the network (pieces) that every schedule moves off-chip after the end of their producer. The
        producer of such a piece streams its output on no allowed core.
        """
        outputs = [piece for piece, is_one in enumerate(self.graph.piece_is_output.tolist()) if is_one]
        return [piece for piece in outputs if self.never_streams(self.producer[piece], OUTPUT_OPERAND)]

    @cached_property
    def fetched(self) -> list[int]:
        """Constants that every schedule fetches."""
        needs = ((cn, *need) for cn, found in enumerate(self.needs) for need in found)
        return sorted({p for cn, p, o in needs if self.producer[p] < 0 and self.never_streams(cn, o)})

    @cached_property
    def either(self) -> dict[int, list[tuple[int, int]]]:
        """CN -> pairs (piece, operand) for pieces whose moves can depend on the core of the CN. The pieces are
        constants that the CN reads, and results of the network that the CN produces. At least one allowed core of the
        CN streams the operand. If the CN runs on a core that does not stream the operand, the piece must move. A
        constant is listed only for the first CN that can fetch the constant.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        seen = set(self.fetched)
        for cn, needs in enumerate(self.needs):
            for piece, operand in sorted(needs):
                may_fetch = any(self.streamed(cn, core)[operand] == 0 for core in self.cores_of[cn])
                if self.producer[piece] < 0 and piece not in seen and may_fetch:
                    seen.add(piece)
                    found.setdefault(cn, []).append((piece, operand))
        always = set(self.results)
        for piece, is_one in enumerate(self.graph.piece_is_output.tolist()):
            if is_one and piece not in always:
                found.setdefault(self.producer[piece], []).append((piece, OUTPUT_OPERAND))
        return found

    def _moved(self, cn: int, core: int) -> list[tuple[int, int]]:
        """Pairs (piece, operand) of `either` that must move if the CN runs on this core. These operands do not stream
        on this core.
        """
        streams = self.streamed(cn, core)
        return [(piece, operand) for piece, operand in self.either.get(cn, ()) if streams[operand] == 0]

    def work(self, on_cores: Mapping[int, int], on_traffic: Sequence[int]) -> Fraction:
        """Bound in cycles from weights of cores and of three kinds of off-chip traffic: reads, writes, and both
        together.
        """
        total = sum(on_cores.values()) + sum(on_traffic)
        if not self.cores_of or total <= 0 or min(on_traffic) < 0:
            return Fraction(0)
        ends = min(map(self.release, range(len(self.needs)))) + min(map(self.tail, range(len(self.needs))))
        read, written = (sum(self.bits[piece] for piece in pieces) for pieces in (self.fetched, self.results))
        amounts = (read, written, read + written)
        found = Fraction(sum(on_cores.values()) * ends)
        found += sum(w * self._over(a, r) for w, a, r in zip(on_traffic, amounts, self.rates, strict=True))
        for cn, cores in enumerate(self.cores_of):
            found += min(self._priced(cn, core, on_cores.get(core, 0), on_traffic) for core in cores)
        return found / total

    def _priced(self, cn: int, core: int, weight: int, on_traffic: Sequence[int]) -> Fraction:
        out, *inward = self.streamed(cn, core)
        amounts = (sum(inward), out, out + sum(inward))
        moved = [(self.bits[piece], operand == OUTPUT_OPERAND) for piece, operand in self._moved(cn, core)]
        written, fetched = (sum(bits for bits, out in moved if out is way) for way in (True, False))
        amounts = (amounts[0] + fetched, amounts[1] + written, amounts[2] + fetched + written)
        streams = Fraction(sum(w * self._over(a, r) for w, a, r in zip(on_traffic, amounts, self.rates, strict=True)))
        return weight * self.runtime(cn, core) + streams

    def _rate(self, source: int, target: int, home: int, wanted: int) -> int:
        """Largest rate in bits per cycle of a transfer from memory `home` of core `source` to memory `wanted` of core
        `target`; 0 if there is no path.
        """
        path = self.path(source, target)
        words = (int(self.system.memory_read_bits[home]), int(self.system.memory_write_bits[wanted]))
        return 0 if path is None else min([*words, *(self.width[link] for link in path)])

    def _cycles(self, bits: int, source: int, wanted: int) -> Fraction | None:
        """Least cycles in which `bits` can move from the output memory of core `source` into memory `wanted`. If
        several cores have this memory, any of them can fetch. None if no path leads from `source` to a core with this
        memory.
        """
        home = self.memory[source][OUTPUT_OPERAND]
        targets = [core for core, row in enumerate(self.memory) if wanted in row]
        rate = max((self._rate(source, core, home, wanted) for core in targets), default=0)
        return Fraction(bits, rate) if rate else None

    def delay(self, piece: int, cn: int, operand: int) -> int:
        """Smallest number of cycles between the end of a piece's producer and the start of a CN that reads the
        piece.
        """
        first, off_chip, best = self.producer[piece], self.system.off_chip_memory, None
        for core in self.cores_of[first]:
            written = self._cycles(self.bits[piece], core, off_chip)
            for other in self.cores_of[cn]:
                out, streams = self.streamed(first, core)[OUTPUT_OPERAND] > 0, self.streamed(cn, other)[operand] > 0
                wanted = self.memory[other][operand]
                fetched = self._cycles(self.bits[piece], self.off, wanted) if wanted >= 0 else None
                if (out and streams) or (not out and not streams and wanted == self.memory[core][OUTPUT_OPERAND]):
                    return 0
                ways = [written] if streams else [fetched] if out else []
                if not streams and not out and wanted >= 0:
                    ways = [self._cycles(self.bits[piece], core, wanted)]
                    ways += [written + fetched] if written is not None and fetched is not None else []
                best = min([way for way in [best, *ways] if way is not None], default=None)
        return 0 if best is None else math.ceil(best)

    def critical_path(self) -> Fraction:
        """Length in cycles of the longest path, with each CN on its fastest core."""
        count = len(self.needs)
        starts, order = self.graph.order_start.tolist(), self.graph.order_predecessor.tolist()
        before: list[dict[int, int]] = [dict.fromkeys(order[starts[cn] : starts[cn + 1]], 0) for cn in range(count)]
        for cn, needs in enumerate(self.needs):
            for piece, operand in needs:
                if (first := self.producer[piece]) >= 0:
                    before[cn][first] = max(before[cn].get(first, 0), self.delay(piece, cn, operand))
        end: dict[int, int] = {}
        waiting = list(range(count))
        while waiting:
            now = [cn for cn in waiting if all(first in end for first in before[cn])]
            for cn in now:
                start = max([self.release(cn), *(end[first] + delay for first, delay in before[cn].items())])
                end[cn] = start + min(self.runtime(cn, core) for core in self.cores_of[cn])
            waiting = [cn for cn in waiting if cn not in end]
        return Fraction(max((end[cn] + self.tail(cn) for cn in end), default=0))

    def links(self, weights: Mapping[int, int]) -> Fraction:
        """Bound in cycles from weights of links. Every piece takes the cheapest of its possible ways."""
        total = sum(weights.values())
        of_link = [Fraction(weights.get(link, 0), width) for link, width in enumerate(self.width)]
        least: dict[int, Fraction] = {}
        for piece, senders, wanted in self._reasons():
            ways = self._ways(senders, wanted)
            if ways:
                price = min(sum((of_link[link] for link in way), Fraction(0)) for way in ways)
                least[piece] = max(least.get(piece, Fraction(0)), price)
        return sum((self.bits[p] * price for p, price in least.items()), Fraction(0)) / total if total else Fraction(0)

    def _reasons(self) -> Iterator[tuple[int, list[int], set[int]]]:
        """Reasons why pieces must move, as triples (piece, cores that can send the piece, memories). At least one of
        the memories must receive the piece.
        """
        for piece in self.results:
            yield piece, self.cores_of[self.producer[piece]], {self.system.off_chip_memory}
        for cn, needs in enumerate(self.needs):
            for piece, operand in needs:
                first = self.producer[piece]
                if not self.never_streams(cn, operand) or self.graph.piece_is_output[piece]:
                    continue
                if first >= 0 and not self.never_streams(first, OUTPUT_OPERAND):
                    continue
                wanted = {self.memory[core][operand] for core in self.cores_of[cn]} - {-1}
                yield piece, [self.off] if first < 0 else self.cores_of[first], wanted

    def _ways(self, senders: Sequence[int], wanted: set[int]) -> list[tuple[int, ...]]:
        """Possible ways in which a piece can move from a core in `senders` to a memory in `wanted`. A way is a tuple of
        links; it is direct, or goes through the off-chip core. The result is [] if the piece need not move over links,
        or if there is no way.
        """
        if wanted & {self.memory[sender][OUTPUT_OPERAND] for sender in senders}:
            return []
        ways: list[tuple[int, ...]] = []
        for sender in senders:
            for target in [core for core, row in enumerate(self.memory) if wanted & set(row)]:
                direct, out, back = self.path(sender, target), self.path(sender, self.off), self.path(self.off, target)
                ways += [] if direct is None else [direct]
                if self.off not in (sender, target) and out is not None and back is not None:
                    ways.append(out + back)
        return [] if () in ways else ways

    def energy_pj(self) -> Fraction:
        """Lower bound in pJ of the energy of a schedule. It is the sum of two parts:

        * For each CN: the least energy over its allowed cores. The energy on a core includes the streams of the CN. It
          also includes fetches and writes that this core requires, but other allowed cores do not (`either`).
        * For each move that every schedule must make: the energy over the cheapest way.
        """
        off = self.system.off_chip_memory
        found = Fraction(0)
        for cn, cores in enumerate(self.cores_of):
            found += min(self._cn_pj(cn, core, off) for core in cores)
        for pieces, reading in ((self.fetched, True), (self.results, False)):
            found += sum((self._off_chip_pj(self.bits[piece], reading) for piece in pieces), Fraction(0))
        return found + self._between_pj()

    def _off_chip_pj(self, bits: int, reading: bool) -> Fraction:
        """Smallest energy in pJ to move a piece of `bits` bits between the off-chip memory and an on-chip memory. If
        `reading` is true, the piece is fetched; otherwise, it is written to the off-chip memory. The cheapest links and
        the cheapest on-chip memory are used.
        """
        off = self.system.off_chip_memory
        cores = [core for core in range(self.system.core_count) if core != self.off]
        ends = ((self.off, core) if reading else (core, self.off) for core in cores)
        links = min((self._link_pj(*pair) for pair in ends), default=Fraction(0))
        memories = [memory for memory in range(len(self.system.memory_capacity_bits)) if memory != off]
        on_chip = min(self._word_pj(bits, memory, not reading) for memory in memories)
        return bits * links + self._word_pj(bits, off, reading) + on_chip

    def _between_pj(self) -> Fraction:
        """Smallest energy in pJ of the necessary moves between cores. A move takes energy on its links and for its
        memory accesses. The energy of a memory access is given per word; each bit counts its share of the word.
        """
        least: dict[int, Fraction] = {}
        for piece, senders, wanted in self._reasons():
            if self.producer[piece] < 0 or self.graph.piece_is_output[piece] or not self._ways(senders, wanted):
                continue
            price = min((pj for s in senders for m in wanted for pj in self._way_pj(s, m)), default=Fraction(0))
            least[piece] = max(least.get(piece, Fraction(0)), price)
        return sum((self.bits[piece] * price for piece, price in least.items()), Fraction(0))

    def _way_pj(self, sender: int, wanted: int) -> Iterator[Fraction]:
        off, ends = self.system.off_chip_memory, self._bit_pj(self.memory[sender][OUTPUT_OPERAND], True)
        ends += self._bit_pj(wanted, False)
        for target in [core for core, row in enumerate(self.memory) if wanted in row]:
            if self.path(sender, target) is not None:
                yield ends + self._link_pj(sender, target)
            if self.path(sender, self.off) is not None and self.path(self.off, target) is not None:
                through = self._bit_pj(off, False) + self._bit_pj(off, True)
                yield ends + through + self._link_pj(sender, self.off) + self._link_pj(self.off, target)

    def _cn_pj(self, cn: int, core: int, off: int) -> Fraction:
        found = Fraction(float(self.costs.on_core_energy_pj[self.graph.cost_row[cn], core]))
        for operand, bits in enumerate(self.streamed(cn, core)):
            ends = (core, self.off) if operand == OUTPUT_OPERAND else (self.off, core)
            found += bits * self._link_pj(*ends) + self._word_pj(bits, off, operand != OUTPUT_OPERAND)
        for piece, operand in self._moved(cn, core):
            found += self._off_chip_pj(self.bits[piece], operand != OUTPUT_OPERAND)
        return found

    def _link_pj(self, source: int, target: int) -> Fraction:
        """Energy in pJ to move one bit over a path."""
        links = self.system.path(source, target).tolist()
        if self.system.forwards_constants and source == self.off:
            links = list(self.path(source, target) or ())
        return sum((Fraction(float(self.system.link_energy_pj_per_bit[link])) for link in links), Fraction(0))

    def _bit_pj(self, memory: int, reading: bool) -> Fraction:
        """Energy in pJ to read (`reading`) or to write one bit: the energy of a word divided by the bits of a word."""
        bits = (self.system.memory_read_bits if reading else self.system.memory_write_bits)[memory]
        return self._word_pj(1, memory, reading) / int(bits)

    def _word_pj(self, bits: int, memory: int, reading: bool) -> Fraction:
        width = int((self.system.memory_read_bits if reading else self.system.memory_write_bits)[memory])
        energy = self.system.memory_read_energy_pj if reading else self.system.memory_write_energy_pj
        return -(-bits // width) * Fraction(float(energy[memory]))
