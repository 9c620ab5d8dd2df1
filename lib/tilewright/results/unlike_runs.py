"""Reasons why a ranking of runs can mislead, such as different clocks, different energies, different sources of costs,
or parts without costs.

All rankings take their warnings from this module: one sentence for each reason, with the names of the runs and the
numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tilewright.hardware.silicon.memory_cost import node_nm_of
from tilewright.results.part_costs import BY_HAND, LIBRARY_SRAM, HardwareCosts, MemoryPart
from tilewright.results.run_point import RunPoint, run_label
from tilewright.results.static_parts import uneven_parts

NODES, CLOCKS, STATIC_POWER, BITS = "process nodes", "clocks", "static power", "bits"
MAC_ENERGY, MAC_OF_BITS, SOURCES = "MAC energy", "MAC energy of other bits", "sources"
OFF_CHIP_ENERGY, FREE_WORK, FREE_ENERGY, FREE_PORTS = "off-chip energy", "free work", "free energy", "free ports"
UNKNOWN_COSTS, MODELS = "unknown costs", "models"


NO_SAMPLES = "no share of samples is given, because samples would vary the energy of a memory in some runs only"
"""Beginning of the sentence that stands in place of a probability."""
WARNED = (NODES,)
"""Kinds of causes that forbid a conclusion about the architectures. They come first, as warnings."""
WARNING = "WARNING: "


class UnlikeCause(NamedTuple):
    """Reason why a ranking of runs can mislead."""

    kind: str
    """Kind of the reason: one of the constants of this module, such as CLOCKS."""
    text: str

    @property
    def line(self) -> str:
        """Text of the cause, marked if it is a warning."""
        return f"{WARNING}{self.text}" if self.kind in WARNED else self.text


def unlike_causes(runs: Sequence[RunPoint]) -> tuple[UnlikeCause, ...]:
    """Reasons why a ranking of the runs can mislead, in a fixed order; () for fewer than two runs."""
    if len(runs) < 2:
        return ()
    found = ((kind, sentence(runs)) for kind, sentence in _SENTENCES.items())
    return tuple(UnlikeCause(kind, text) for kind, text in found if text)


def causes_by_network(runs: Sequence[RunPoint]) -> tuple[tuple[str, tuple[UnlikeCause, ...]], ...]:
    """Reasons why a ranking of the runs of a network can mislead: pairs (name of the network, reasons), one for each
    network with such a reason.

    The reasons are for tables that list runs with different options. If the runs of a network have different cost
    models, the first reason is this difference. All other reasons come from comparisons of runs of the same model.
    """
    networks = dict.fromkeys(run.workload for run in runs)
    found = ((name, _by_model([run for run in runs if run.workload == name])) for name in networks)
    return tuple((name, causes) for name, causes in found if causes)


def _by_model(runs: Sequence[RunPoint]) -> tuple[UnlikeCause, ...]:
    by_model: dict[str, list[RunPoint]] = {}
    for run in runs:
        by_model.setdefault(run.model, []).append(run)
    if len(by_model) < 2:
        return unlike_causes(runs)
    names = _by_value(runs, lambda run: f"model {run.model}")
    models = UnlikeCause(MODELS, f"models differ, so rank only runs of the same model: {_listed(names)}")
    return (models, *(cause for own in by_model.values() for cause in unlike_causes(own)))


def cause_lines(runs: Sequence[RunPoint]) -> tuple[str, ...]:
    """Sentences for the results of `causes_by_network`, each with the name of the network."""
    return tuple(f"{name}: {cause.line}" for name, causes in causes_by_network(runs) for cause in causes)


def _nodes(runs: Sequence[RunPoint]) -> str:
    def nodes(run: RunPoint) -> str:
        found = sorted({node for law in _laws(run) if (node := node_nm_of(law)) is not None})
        return f"{' and '.join(f'{node:g}' for node in found)} nm" if found else ""

    values = _by_value(runs, nodes)
    if len(values) < 2:
        return ""
    return (
        f"process nodes differ ({_listed(values)}), so energies, areas, and a ranking by them do not compare the"
        " architectures"
    )


def _laws(run: RunPoint) -> Iterator[str]:
    """Laws of the library of costs that give energies of the memories of a run, as far as they are known."""
    if run.costs is not None:
        yield from (memory.law for memory in run.costs.memories)
    yield from (part.law for part in run.cost_parts)


def _clocks(runs: Sequence[RunPoint]) -> str:
    if len({run.clock_frequency_mhz for run in runs}) < 2:
        return ""
    unclocked = dict.fromkeys(run.core for run in runs if run.clock_frequency_mhz is None)
    if unclocked:
        return f"no clock given: {', '.join(unclocked)}; compared by cycles, not by time"
    times = (f"{run_label(run)} {run.latency_s:.4g} s" for run in runs)
    return f"clocks differ: compare by time, not by cycles: {', '.join(times)}"


def _static_power(runs: Sequence[RunPoint]) -> str:
    without = dict.fromkeys(run_label(run) for run in runs if not run.static_power_w)
    powers = dict.fromkeys(f"{run_label(run)} {run.static_power_w:.4g} W" for run in runs if run.static_power_w)
    if 0 < len(without) < len({run_label(run) for run in runs}):
        return (
            f"static power is not given for {', '.join(without)}: only the energies of the other runs include it"
            f" ({', '.join(powers)})"
        )
    missing = uneven_parts({run_label(run): run.static_parts for run in runs})
    listed = "; ".join(f"{', '.join(parts)} in {label}" for label, parts in missing)
    return f"these parts have a static power in other runs, but none here: {listed}" if listed else ""


def _bits(runs: Sequence[RunPoint]) -> str:
    values = _by_value(runs, lambda run: run.bits)
    return f"the bits of the operands differ: {_listed(values)}" if len(values) > 1 else ""


def _unit_energy_text(run: RunPoint) -> str:
    """Energy of a MAC as text; '' if it is not known."""
    unit_pj = None if run.costs is None else run.costs.unit_energy_pj
    return "" if unit_pj is None else f"{unit_pj:.6g} pJ"


def _mac_energy(runs: Sequence[RunPoint]) -> str:
    values = _by_value(runs, _unit_energy_text)
    return f"the energy of a MAC differs: {_listed(values)}" if len(values) > 1 else ""


def _mac_of_bits(runs: Sequence[RunPoint]) -> str:
    """Sentence on runs with the same energy of a MAC, although the bits of their operands differ."""
    alike: dict[str, list[RunPoint]] = {}
    for run in runs:
        if run.bits and (energy := _unit_energy_text(run)):
            alike.setdefault(energy, []).append(run)
    found = [
        f"{energy} in {_listed(values)}"
        for energy, own in alike.items()
        if len(values := _by_value(own, lambda run: run.bits)) > 1
    ]
    same = "the energy of a MAC is the same, although the bits of the operands differ"
    return f"{same}: {'. '.join(found)}" if found else ""


def _sources(runs: Sequence[RunPoint]) -> str:
    def sources(run: RunPoint) -> str:
        found = () if run.costs is None else run.costs.sources
        laws = ", ".join(law for law in found if law != BY_HAND)
        by_hand = "numbers of the hardware file, without a source" if BY_HAND in found else ""
        return " and ".join(filter(None, (f"library of costs ({laws})" if laws else "", by_hand)))

    values = _by_value(runs, sources)
    return f"energies of memories have different sources: {_listed(values)}" if len(values) > 1 else ""


def _off_chip_energy(runs: Sequence[RunPoint]) -> str:
    def energy(run: RunPoint) -> str:
        parts = run.costs.memories if run.costs else ()
        return ", ".join(f"{part.name} {_bits_text(part)}" for part in parts if not part.is_on_chip)

    def numbers(run: RunPoint) -> tuple[tuple[float, float], ...]:
        parts = run.costs.memories if run.costs else ()
        return tuple(
            (round(read, 9), round(write, 9))
            for part in parts
            if not part.is_on_chip
            for read, write in (part.bit_energies_pj,)
        )

    known = [run for run in runs if energy(run)]
    if len({numbers(run) for run in known}) < 2:
        return ""
    return f"the energy per bit of the off-chip memory differs: {_listed(_by_value(known, energy))}"


def _bits_text(part: MemoryPart) -> str:
    read, write = part.bit_energies_pj
    same = f"{read:.4g}" == f"{write:.4g}"
    return f"{read:.4g} pJ/b" if same else f"{read:.4g} (read) and {write:.4g} (write) pJ/b"


def _free_work(runs: Sequence[RunPoint]) -> str:
    values = _by_value(runs, lambda run: run.free_work)
    unknown = dict.fromkeys(run_label(run) for run in runs if not run.knows_free_work)
    rest = f"; not known for {', '.join(unknown)}" if unknown else ""
    return f"free of cost, because there is no cost model for this work: {_listed(values)}{rest}" if values else ""


def _free_energy(runs: Sequence[RunPoint]) -> str:
    def parts(run: RunPoint) -> str:
        return ", ".join(_without_energy(run.costs)) if run.costs else ""

    values = _by_value(runs, parts)
    return f"the hardware file gives no energy for these operations: {_listed(values)}" if values else ""


def _without_energy(costs: HardwareCosts) -> Iterator[str]:
    if costs.unit_energy_pj == 0:
        yield "MACs"
    for part in costs.memories:
        kinds = ((part.read_energy_pj, part.read_bits, "reading"), (part.write_energy_pj, part.write_bits, "writing"))
        free = [words for energy, bits, words in kinds if bits and not energy]
        if free:
            yield f"{part.name} ({' and '.join(free)})"


def _free_ports(runs: Sequence[RunPoint]) -> str:
    def parts(run: RunPoint) -> str:
        memories = run.costs.memories if run.costs else ()
        ported = (part for part in memories if part.port_count > 1 and part.law.startswith(LIBRARY_SRAM))
        return ", ".join(f"{part.name} has {part.port_count}" for part in ported)

    values = _by_value(runs, parts)
    text = "costs from the library count one port that reads and writes; energy and area of further ports are free"
    return f"{text}: {_listed(values)}" if values else ""


def _unknown_costs(runs: Sequence[RunPoint]) -> str:
    missing = [run_label(run) for run in runs if run.costs is None and not run.is_of_several_cores]
    if not 0 < len(missing) < len(runs):
        return ""
    return (
        f"the hardware of {', '.join(missing)} is not known, so energies of MACs and memories, and the sources of these"
        " energies, are not compared"
    )


def one_sided_ranges(runs: Sequence[RunPoint]) -> str:
    """Text on memories whose energy has a range in some of the runs but not in other runs with the same memory; '' if
    there are none. Samples of the costs then vary the energy of some runs only.

    On-chip memories are compared if they have the same name. Off-chip memories are compared whatever their names.
    """
    parts = [(run, part) for run in runs if run.costs for part in run.costs.memories if any(part.bit_energies_pj)]
    texts = []
    for role in dict.fromkeys(_role(part) for _, part in parts):
        own = [(run, part) for run, part in parts if _role(part) == role]
        if len({part.has_range for _, part in own}) > 1:
            values: dict[str, list[str]] = {}
            for run, part in own:
                names = values.setdefault(f"{part.name} {_range_text(part)}", [])
                names.extend(name for name in (run_label(run),) if name not in names)
            texts.append(_listed(values))
    return "; ".join(texts)


def _role(part: MemoryPart) -> str:
    return part.name if part.is_on_chip else "off-chip memory"


def _range_text(part: MemoryPart) -> str:
    if not part.has_range:
        return f"{_bits_text(part)}, without a range"
    read = part.bit_energies_pj[0]
    if not read:
        return f"{part.low:g} to {part.high:g} times {_bits_text(part)}"
    return f"{part.low * read:.4g} to {part.high * read:.4g} pJ/b"


def _by_value(runs: Sequence[RunPoint], value: Callable[[RunPoint], str]) -> dict[str, list[str]]:
    """Names of the runs with the same text from the function `value`, by text. Runs with the text '' are left out."""
    found: dict[str, list[str]] = {}
    for run in runs:
        if text := value(run):
            names = found.setdefault(text, [])
            names.extend(name for name in (run_label(run),) if name not in names)
    return found


def _listed(values: dict[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in values.items())


_SENTENCES: dict[str, Callable[[Sequence[RunPoint]], str]] = {
    NODES: _nodes,
    CLOCKS: _clocks,
    STATIC_POWER: _static_power,
    BITS: _bits,
    MAC_ENERGY: _mac_energy,
    MAC_OF_BITS: _mac_of_bits,
    SOURCES: _sources,
    OFF_CHIP_ENERGY: _off_chip_energy,
    FREE_WORK: _free_work,
    FREE_ENERGY: _free_energy,
    FREE_PORTS: _free_ports,
    UNKNOWN_COSTS: _unknown_costs,
}
"""Functions that make the sentence on a reason ('' if it does not apply), by kind of reason. Sentences have the order
of this table.
"""
