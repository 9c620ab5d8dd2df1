"""The printed advice of `advise`, checked with the plain model and against `explain`.

Each change is costed, no helpful change may be missing, and no line may contradict `explain`. A change is read from its
line: the key in the hardware file and the new value. If the verb also searches, the file of `--write` is mapped again
and must give the promised gain.
"""

import itertools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator

from tests.plain.plain_runs import PlainRun
from tests.plain.printed_text import Row, is_change, said, table
from tests.plain.spatial import DoesNotFitError

if TYPE_CHECKING:
    from tests.plain.printed_verdicts import PrintedRun

LEAST_GAIN = 0.001
"""Share of the objective from which on a change counts as helpful."""
SEARCHED_EVERY = 8
MOST_ROWS = 12
TOGETHER = re.compile(
    r"Together, these changes help \(same mappings\): (?P<changes>.+): (?P<gain>\S+)(?: less)? of (?P<goal>\S+)\."
)
ONE = re.compile(r"(?P<key>\S+) \((?P<before>\S+) -> (?P<after>\S+)\)")
Change = tuple[str, str]
"""(key, new value)"""


def judge_advice(case: "PrintedRun") -> None:
    """Check the advice that `advise` prints for a run."""
    Advice(case).judge()


class Advice:
    """The printed advice for a run, and the true gain of each change."""

    def __init__(self, case: "PrintedRun") -> None:
        self.case, self.run, self.core = case, case.run, case.core
        self.searches = case.seed % SEARCHED_EVERY == 0 and (case.engine == "loma" or not case.is_open)
        words = () if self.searches else ("--no-search",)
        words += () if case.seed % 4 == 1 and not case.is_open else ("--no-mapping-changes",)
        self.words = (*case.given, *words)
        self.text = said("advise", case.out, *self.words, "-o", case.folder / "advice")
        self.data: dict[str, Any] = json.loads((case.folder / "advice/advice.json").read_text("utf-8"))
        self.now = self.run.value(self.run.energy, self.run.latency)

    def expect(self, holds: bool, *what: object) -> bool:
        """Record an error unless the statement holds."""
        return self.case.expect(holds, "advise:", *what)

    def gain(self, changes: list[Change]) -> float | None:
        """Share of the objective that changes save with the same mappings; None if these do not fit."""
        core = self.core
        for key, after in changes:
            core = changed(core, key, after)
        found = self.run.on(core)
        return None if found is None else (self.now - self.run.value(*found)) / self.now

    def judge(self) -> None:
        """Check the lists, the changes that they leave out, and the changes that help together."""
        rows = table(self.text, f"One change that helps {self.case.objective}")
        gains = {key: self.gain([(key, after)]) for key, after in all_more(self.core)}
        helpful = {key: gain for key, gain in gains.items() if (gain or 0.0) >= LEAST_GAIN * (1 + 1e-9)}
        told = {row["key"] for row in rows}
        for row in rows:
            self.judge_row(row)
        found = re.search(r"  (\d+) other changes help less", self.text)
        self.expect(len(rows) + int(found[1] if found else 0) == len(self.data["helpful"]), rows, self.data["helpful"])
        if found is None:
            for key, gain in helpful.items():
                self.expect(key in told, key, "saves", gain, "and is not told", told)
        none_helps = "No single change saves" in self.text
        self.expect(none_helps == (not rows), self.text)
        self.case.tally.counts["no single change helps"] += none_helps
        if none_helps:
            self.expect(not helpful, "no single change helps, and", helpful)
            self.judge_together()
        elif not self.searches:
            self.judge_order(rows, helpful)
        self.judge_spare()
        self.judge_written(rows)
        self.judge_other_lanes(rows)
        self.judge_ports(gains)

    def judge_row(self, row: Row) -> None:
        """Check the gain of a change with the same mappings."""
        if row["key"].startswith("mapping: "):
            return
        after = row["from -> to"].split(" -> ")[1].split(",")[0]
        gain = self.gain([(row["key"], after)])
        told = row[f"{self.case.objective}, same mappings"]
        self.expect(is_change(told, gain), row, "is", gain)
        helps = (gain or 0.0) >= LEAST_GAIN * (1 - 1e-9)
        self.expect(helps or self.searches, row, "helps by", gain)

    def judge_order(self, rows: list[Row], helpful: dict[str, float | None]) -> None:
        """Check that the first change is the one that saves most."""
        first = rows[0]["key"]
        if first.startswith("mapping: "):
            return
        best = max((gain or 0.0 for gain in helpful.values()), default=0.0)
        self.expect((helpful.get(first) or 0.0) >= best * (1 - 1e-9), first, "is the first, another saves", best)

    def judge_together(self) -> None:
        """Check the gain of the changes that are said to help together; only two are named if two help."""
        candidates = [one for one in all_more(self.core) if self.can_help(one[0])]
        found = TOGETHER.search(self.text)
        pairs = [self.gain(list(one)) or 0.0 for one in itertools.combinations(candidates, 2)]
        best = max(pairs, default=0.0)
        if found is None:
            self.expect(best < LEAST_GAIN * (1 + 1e-9), "two changes save", best, "and none are told", self.text)
            return
        self.case.tally.counts["changes help together"] += 1
        changes = [(one["key"], one["after"]) for one in ONE.finditer(found["changes"])]
        gain = self.gain(changes)
        self.expect(is_change(found["gain"], gain), found[0], "is", gain)
        self.expect((gain or 0.0) >= LEAST_GAIN * (1 - 1e-9), found[0], "is", gain)
        if best >= LEAST_GAIN * (1 + 1e-9):
            self.expect(len(changes) == 2 and (gain or 0.0) >= best * (1 - 1e-9), found[0], "two save", best)

    def can_help(self, key: str) -> bool:
        """Whether a change of this key can affect the objective: energies save no cycles."""
        return self.case.objective != "latency" or not key.endswith(("_cost", "unit_energy"))

    def judge_spare(self) -> None:
        """Check that the text lists exactly the parts whose removal costs neither energy nor latency."""
        rows = table(self.text, "One change that reduces a resource")
        told = {row["key"]: row for row in rows}
        for key, after, narrower in all_less(self.core):
            core = changed(self.core, key, after)
            if narrower:
                core = changed(core, key.replace("bandwidth_max", "bandwidth_min"), after)
            found = self.run.on(core)
            row = told.pop(key, None)
            costs = found is None or found[0] > self.run.energy or found[1] > self.run.latency
            if row is None:
                self.expect(costs, key, after, "costs nothing and is not told", found)
                continue
            is_sure = found is not None and max(found[0] / self.run.energy, found[1] / self.run.latency) <= 1 + 1e-9
            self.expect(is_sure or row["by"] == "a new search", row, "costs", found, self.run.energy, self.run.latency)
            if row["by"] == "same mappings" and found is not None:
                for name, now, then in (
                    ("energy", self.run.energy, found[0]),
                    ("latency", self.run.latency, found[1]),
                ):
                    share = (now - then) / now if now else 0.0
                    self.expect(is_change(row[name], share if abs(share) > 1e-12 else 0.0), row, share)
        self.expect(not told, "there is no change with this number", told)

    def judge_ports(self, gains: dict[str, float | None]) -> None:
        """Check that `explain` states the same saving for a wider port."""
        if self.case.objective != "latency":
            return
        for name, cycles in self.run.singles().items():
            memory, port = name.split()
            gain = gains[f"memories.{memory}.ports.{port}.bandwidth_max"] or 0.0
            self.expect(math.isclose(gain * self.run.latency, cycles, abs_tol=1e-6), name, gain, cycles)

    def judge_written(self, rows: list[Row]) -> None:
        """Check that the first change, written and mapped again, has the gain that was stated for a new search."""
        row = next((one for one in rows if not one["key"].startswith("mapping: ")), None)
        if not self.searches or row is None:
            return
        file, folder = self.case.folder / "changed.yaml", self.case.folder / "changed"
        said("advise", self.case.out, *self.words, "--write", row["no."], file)
        self.case.map(self.case.engine, self.case.objective, folder, file)
        self.expect_gain(row, folder)
        self.judge_held(row, PlainRun.read(folder, read_accelerator(file).cores[0], self.case.network))

    def expect_gain(self, row: Row, folder: Path) -> None:
        """Check that the run in a folder has the gain that was stated for a new search."""
        summary = json.loads((folder / "summary.json").read_text("utf-8"))["payload"]
        value = self.run.value(summary["energy_pj"], summary["latency_cycles"])
        gain = (self.now - value) / self.now
        self.expect(is_change(row["new search"], gain), row, "is", gain)
        self.case.tally.counts["changes that were mapped"] += 1

    def judge_held(self, row: Row, changed_run: PlainRun) -> None:
        """Check the stated gain on the unchanged hardware, with the mappings found for the changed hardware."""
        told = row.get("its mappings without it", "-")
        if told == "-":
            return
        self.case.tally.counts["mappings that were held"] += 1
        try:
            costs = [one.cost(self.core, changed_run.core) for one in changed_run.layers]
        except DoesNotFitError:
            self.expect(told == "does not fit", row, "does not fit")
            return
        energy = changed_run.total([one.energy_pj for one in costs])
        gain = (
            self.now - self.run.value(energy, changed_run.total([float(one.latency_cycles) for one in costs]))
        ) / self.now
        self.expect(is_change(told, gain), row, "held is", gain)

    def judge_other_lanes(self, rows: list[Row]) -> None:
        """Check that the first change of the mapping file, written by hand and mapped, has the promised gain."""
        row = next((one for one in rows if one["key"].startswith("mapping: ")), None)
        if row is None:
            return
        name, _, *sides = row["key"].removeprefix("mapping: ").split(".")
        before, after = row["from -> to"].split(" -> ")
        entries = yaml.safe_load(self.case.files[1].read_text("utf-8"))
        lanes = next(entry for entry in entries if entry["name"] == name)["spatial_mapping"]
        if after == "left out":
            for side in sides or before.split(", "):
                del lanes[side]
        else:
            lanes[sides[0]] = [one.replace(" ", ", ") for one in after.split(", ")]
        file, folder = self.case.folder / "lanes.yaml", self.case.folder / "lanes"
        file.write_text(yaml.safe_dump([_without_empty(entry) for entry in entries], sort_keys=False), "utf-8")
        self.case.map(self.case.engine, self.case.objective, folder, mapping=file)
        self.expect_gain(row, folder)


def _without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "spatial_mapping" or value}


def all_more(core: Core) -> list[Change]:
    """Every number that could be larger, and every energy that could be smaller, in the form of advice."""
    array = core.operational_array
    found = [(f"operational_array.sizes.{n}", str(2 * size)) for n, (_, size) in enumerate(array.dimensions)]
    found += [("operational_array.unit_energy", str(array.unit_energy_pj / 2))] if array.unit_energy_pj else []
    for memory in core.memories:
        place = f"memories.{memory.name}"
        found.append((f"{place}.size", str(2 * memory.size_bits)))
        costs = (("r_cost", memory.read_energy_pj), ("w_cost", memory.write_energy_pj))
        found += [(f"{place}.{key}", str(cost / 2)) for key, cost in costs if cost]
        for port in memory.ports:
            found.append((f"{place}.ports.{port.name}.bandwidth_max", str(2 * port.bandwidth_max_bits)))
    return found


def all_less(core: Core) -> list[tuple[str, str, bool]]:
    """(key, smaller value, is_narrower) of every number that could be smaller.

    `is_narrower` is True if the value is below the port's smallest width, which must then be reduced, too.
    """
    found = []
    for number, (_, size) in enumerate(core.operational_array.dimensions):
        found.append((f"operational_array.sizes.{number}", size // 2, False))
    for memory in core.memories:
        found.append((f"memories.{memory.name}.size", memory.size_bits // 2, False))
        for port in memory.ports:
            less = port.bandwidth_max_bits // 2
            place = f"memories.{memory.name}.ports.{port.name}.bandwidth_max"
            found.append((place, less, port.bandwidth_min_bits > less))
    return [(key, str(less), narrower) for key, less, narrower in found if less > 0]


def changed(core: Core, key: str, after: str) -> Core:
    """The core with one number of its file changed."""
    first, *rest = key.split(".")
    if first == "operational_array":
        return replace(core, operational_array=_changed_array(core, rest, after))
    name, *rest = rest
    memories = list(core.memories)
    place = next(k for k, memory in enumerate(memories) if memory.name == name)
    memory = memories[place]
    if rest[0] == "ports":
        field = {"bandwidth_max": "bandwidth_max_bits", "bandwidth_min": "bandwidth_min_bits"}[rest[2]]
        ports = tuple(replace(one, **{field: int(after)}) if one.name == rest[1] else one for one in memory.ports)
        memories[place] = replace(memory, ports=ports)
    elif rest[0] == "size":
        memories[place] = replace(memory, size_bits=int(after))
    else:
        field = {"r_cost": "read_energy_pj", "w_cost": "write_energy_pj"}[rest[0]]
        memories[place] = replace(memory, **{field: float(Fraction(after))})
    return replace(core, memories=tuple(memories))


def _changed_array(core: Core, rest: list[str], after: str) -> Any:
    array = core.operational_array
    if rest[0] == "unit_energy":
        return replace(array, unit_energy_pj=float(after))
    dimensions = list(array.dimensions)
    dimensions[int(rest[1])] = (dimensions[int(rest[1])][0], int(after))
    return replace(array, dimensions=tuple(dimensions))
