"""Reasons why a ranking of runs can mislead, such as different clocks, different energies, different sources of costs,
or parts without costs.

All rankings take their warnings from this module: one sentence for each reason, with the names of the runs and the
numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tilewright.results.part_costs import BY_HAND, LIBRARY_SRAM, HardwareCosts, MemoryPart
from tilewright.results.run_point import RunPoint, run_label

CLOCKS, STATIC_POWER, MAC_ENERGY, SOURCES = "clocks", "static power", "MAC energy", "sources"
OFF_CHIP_ENERGY, FREE_WORK, FREE_ENERGY, FREE_PORTS = "off-chip energy", "free work", "free energy", "free ports"
UNKNOWN_COSTS, MODELS = "unknown costs", "models"


class UnlikeCause(NamedTuple):
    """Reason why a ranking of runs can mislead."""

    kind: str
    """Kind of the reason: one of the constants of this module, such as CLOCKS."""
    text: str


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
    return tuple(f"{name}: {cause.text}" for name, causes in causes_by_network(runs) for cause in causes)


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
    if not 0 < len(without) < len({run_label(run) for run in runs}):
        return ""
    powers = dict.fromkeys(f"{run_label(run)} {run.static_power_w:.4g} W" for run in runs if run.static_power_w)
    return (
        f"static power is not given for {', '.join(without)}: only the energies of the other runs include it"
        f" ({', '.join(powers)})"
    )


def _mac_energy(runs: Sequence[RunPoint]) -> str:
    differs_in_bits = len({run.bits for run in runs}) > 1
    energies = {run.costs.unit_energy_pj for run in runs if run.costs and run.costs.unit_energy_pj is not None}

    def energy(run: RunPoint) -> str:
        unit_pj = None if run.costs is None else run.costs.unit_energy_pj
        return "" if unit_pj is None else f"{unit_pj:.6g} pJ{f' ({run.bits} bits)' * differs_in_bits}"

    values = _by_value(runs, energy)
    if len(values) < 2:
        return ""
    same = "the energy of a MAC is the same, although the bits of operands differ"
    return f"{'the energy of a MAC differs' if len(energies) > 1 else same}: {_listed(values)}"


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
    return f"free of cost, because there is no cost model for this work: {_listed(values)}" if values else ""


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
    CLOCKS: _clocks,
    STATIC_POWER: _static_power,
    MAC_ENERGY: _mac_energy,
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
