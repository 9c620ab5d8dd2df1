"""Energy by memory and idle units of the array in the output of `explain`, checked with the plain model."""

import math
import re
from typing import TYPE_CHECKING

import yaml

from tests.plain.model import PlainModel
from tests.plain.plain_runs import PlainLayer, PlainRun
from tests.plain.printed_text import SHARE, VerbError, is_close, is_count, is_share, number, table
from tests.plain.reuse import DIRECTIONS

if TYPE_CHECKING:
    from tests.plain.printed_verdicts import PrintedRun

LEAST_STALL = 0.01
BY_FILE = re.compile(
    rf"the best generated spatial mappings would avoid (?P<cycles>[\d,]+) of the stall cycles"
    rf" \((?P<share>{SHARE}) of the latency\)"
)
FULL_TO = re.compile(r"share of working units along each side of the array, while the array computes: (.+)")
PLACE = re.compile(r"mapping\.yaml:\d+ \(")
MICRO = 1e6
Energies = dict[tuple[str, str], dict[str, float]]


def judge_energy(case: "PrintedRun", text: str, record: int | None) -> None:
    """Check energy by memory, operand and direction against the words of the plain model."""
    true = energies(case.run, record)
    whole = math.fsum(value for row in true.values() for value in row.values())
    rows = table(text, "Energy by memory, operand and direction")
    kept = {(row["memory"], row["operand"]): row for row in rows if row["memory"] != "all"}
    case.expect(kept.keys() == true.keys(), "explain: energies of", list(kept), "are of", list(true))
    for place, row in kept.items():
        parts = true.get(place, {})
        own = math.fsum(parts.values())
        case.expect(is_energy(row["all"], own) and is_share(row["share"], own / whole), "explain:", row, own, whole)
        for name in DIRECTIONS:
            if row.get(name):
                case.expect(is_energy(row[name], parts.get(name, 0.0)), "explain:", row, name, parts)
    order = [number(row["all"]) for row in kept.values()]
    case.expect(order == sorted(order, reverse=True), "explain: energies are not in order", kept)


def is_energy(text: str, energy_pj: float) -> bool:
    """Whether a number in µJ with four digits is this energy."""
    value = energy_pj / MICRO
    return is_count(text, value) if abs(value) >= 1e4 else is_close(text, value, 4)


def energies(run: PlainRun, record: int | None) -> Energies:
    """(memory, operand) -> energy by direction in pJ, and the energy of operations."""
    found: Energies = {}
    for k, layer in enumerate(run.layers):
        count = (run.counts[k] if record is None else 1) if record in (None, k) else 0
        cost = run.costs[k]
        if count and cost.mac_energy_pj:
            own = found.setdefault(("MAC", ""), {"": 0.0})
            own[""] += cost.mac_energy_pj * count
        links = layer.record["memory_operand_links"]
        for operand, levels in cost.words.items() if count else ():
            chain = [memory for memory in run.core.memories if links[operand] in memory.operands]
            for memory, words in zip(chain, levels, strict=True):
                for direction, number_of in words.items():
                    cost_pj = memory.read_energy_pj if direction in ("tl", "th") else memory.write_energy_pj
                    if number_of * cost_pj:
                        row = found.setdefault((memory.name, operand), dict.fromkeys(DIRECTIONS, 0.0))
                        row[direction] += number_of * cost_pj * count
    return found


def judge_array(case: "PrintedRun", text: str) -> None:
    """Check the causes of idle units: their cycles add up to the spatial stall.

    The cycles blamed on the mapping file are those that a run with generated spatial mappings saves.
    """
    stall, latency = case.run.kinds()["spatial stall"], case.run.latency
    rows = table(text, "Causes of the spatial stall")
    if abs(stall / latency - LEAST_STALL) < 1e-9:
        return
    case.expect(bool(rows) == (stall > LEAST_STALL * latency), "explain: spatial stall", stall, latency, rows)
    if not rows:
        return
    whole = sum(number(row["cycles"]) for row in rows)
    case.expect(abs(whole - stall) <= 0.5 * len(rows) + 1e-6, "explain: spatial stall of", stall, rows)
    for row in rows:
        case.expect(is_share(row["share"], number(row["cycles"]) / latency) or latency < 1000, "explain:", row, latency)
    if len(case.run.layers) == 1:
        judge_sides(case, text)
    if case.seed % 4 == 0:
        judge_blame(case, text, sum(number(row["cycles"]) for row in rows if PLACE.search(row["because of"])))


def judge_sides(case: "PrintedRun", text: str) -> None:
    """Check that the product of the working shares of the array's sides is the working share of all units."""
    found = FULL_TO.search(text)
    if not case.expect(found is not None, "explain is silent on sides:", text) or found is None:
        return
    shares = [float(one) / 100 for one in re.findall(r"([\d.]+)%", found[1])]
    work = case.run.total([float(case.run.layers[0].layer.mac_count)])
    kinds, units = case.run.kinds(), math.prod(size for _, size in case.core.operational_array.dimensions)
    busy = work / units / (kinds["array"] + kinds["spatial stall"])
    room = math.fsum(math.prod(shares) / max(one, 1e-3) * 0.00051 for one in shares) + 1e-6
    case.expect(abs(math.prod(shares) - busy) <= room, "explain:", found[0], "together", busy)


def judge_blame(case: "PrintedRun", text: str, told_by_rows: float) -> None:
    """Check the cycles that a text blames on the mapping file: map again with lanes that the search generates."""
    entries = yaml.safe_load(case.files[1].read_text("utf-8"))
    file, folder = case.folder / "free.yaml", case.folder / "free"
    for entry in entries:
        entry.pop("spatial_mapping", None)
    file.write_text(yaml.safe_dump(entries, sort_keys=False), "utf-8")
    try:
        case.map(case.engine, case.objective, folder, mapping=file)
    except VerbError:  # of some layer no generated mapping fits
        return
    free = PlainRun.read(folder, case.core, case.network)
    true = 0.0
    for k, layer in enumerate(case.run.layers):
        name = layer.names[0]
        own = next(one for one in free.layers if name in one.names)
        parts, generated = case.run.parts(k), min(map(float, _passes(own, case)))
        computing = parts["ideal"] + parts["spatial_stall"]
        fixed = bool(case.unrollings[name])
        true += min(parts["spatial_stall"], max(0.0, computing - generated)) * case.run.counts[k] * fixed
    case.tally.counts["mapping files that were blamed"] += true > 0
    found = BY_FILE.search(text)
    told = number(found["cycles"]) if found else told_by_rows
    # The engines with bounds record some mappings of those that they cover; others may save more.
    is_true = told >= true - 0.5 if case.engine != "loma" else abs(told - true) <= 0.5
    if found is not None or true >= LEAST_STALL * case.run.latency:
        case.expect(found is not None and is_true, "explain: the mapping file is blamed for", told, "and not for", true)
    if found is not None:
        case.expect(is_share(found["share"], told / case.run.latency) or told < 500, "explain:", found[0])


def _passes(layer: PlainLayer, case: "PrintedRun") -> list[int]:
    """Cycles in which the array computes, for each generated spatial mapping."""
    links = tuple(layer.record["memory_operand_links"].items())
    found = []
    for one in layer.record.get("candidates", [layer.record]):
        unrolling = tuple((side, tuple(loops.items())) for side, loops in one["spatial_mapping"].items())
        plain = PlainModel(layer.layer, case.core, links, unrolling, False, layer.record["model"])
        found.append(math.prod(plain.temporal_sizes.values()) * plain.phases)
    return found
