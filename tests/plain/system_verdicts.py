"""Verdicts of verbs and pages on a network on several cores, checked against artifacts and brute force.

Each seed gives a small network on a small system. Even seeds leave the cores of layers free, or fix some of them, and
run `allocate` and `schedule`; odd seeds run `fuse`.

The tests check that every bound states its scope, and that every factor is the quotient of the numbers beside it. The
stated limit saves most of all parts that can be doubled. The cycles of each core add up to the latency. An advice gives
the result of the flow on the changed file. No verb or page contradicts another one.
"""

import contextlib
import csv
import io
import itertools
import json
import random
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tilewright.base.errors import MappingError
from tilewright.cli.main import main
from tilewright.hardware.system import OFFCHIP_PORT
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.result import ScheduleArtifact, read_schedule
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.multicore.scheduling.system_assembly import MEMORY_OPERANDS
from tilewright.results.multi.core_cycles import BUSY_CAUSES

from tests.plain.tally import Tally
from tests.unit.multi_core.random_cases import RandomNetwork, random_options, random_system, random_tiling
from tests.unit.multi_core.runs import FAST, GA, write_accelerator, write_mapping

PLANS = ("--nb-plans", "8", "--fusion-time-budget-s", "none", "--jobs", "1", "--lpf-limit", "4")
BOUND = re.compile(
    r"lower bounds for these tiles: (?P<cycles>[\d,]+) cycles, (?P<energy>\S+) µJ;"
    r" gaps: (?P<latency_gap>[\d.]+%) in latency, (?P<energy_gap>[\d.]+%) in energy(?:, [\d.]+% in EDP)?;"
    r" the bounds hold for (?P<covers>.+)"
)
TIMES = re.compile(
    r"(?P<cycles>[\d,]+) cycles, (?P<energy>\S+) µJ; (?P<latency>[\d.]+) times the latency, (?P<more>\S+)"
)
LIMIT = re.compile(r"limited by: (?P<part>.+?)(?: together)? saves (?P<cycles>[\d,]+) cycles?, (?P<share><?[\d.]+%)")
ONE, ALL, SOME = "the only allowed allocation", "all allocations", "all allowed allocations"
TOLD = 6e-6
"""Largest relative error of printed numbers, which have four to six digits."""
TABLES = ("link_bits_per_cycle", "memory_read_bits", "memory_write_bits", "memory_capacity_bits")
LINKS = {"O": "O", "W": "I2", "I": "I1"}
REFUSED = ("does not fit", "no schedule", "cannot run", "more tiles than")
"""Messages of verbs for random settings that a random network cannot have."""
ADVISED = 4
"""Number of seeds for each seed that gets advice; checking each piece of advice takes a run."""


def try_system_verdicts(seed: int) -> Tally:
    """Check the verdicts on a random network on a random system."""
    with tempfile.TemporaryDirectory() as folder:
        case = Case(seed, Path(folder))
        case.judge()
    return Tally(case.tally.counts, [f"seed {seed}: {text}" for text in case.tally.wrong])


class VerbError(Exception):
    """Raised if a verb fails."""


def said(*words: str | Path) -> str:
    """The terminal output of a verb. Raises VerbError if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    if code:
        raise VerbError(f"{' '.join(map(str, words))}: {err.getvalue()}")
    return out.getvalue()


@dataclass
class Case:
    """The files of a seed, and the errors in statements of verbs on them."""

    seed: int
    folder: Path
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.network = RandomNetwork(self.draw).save(self.folder)
        self.hardware = write_accelerator(self.folder / "hw", random_system(self.draw))
        self.cores: dict[int, str] = yaml.safe_load(self.hardware.read_text())["cores"]
        self.out = self.folder / "out"

    @property
    def given(self) -> tuple[str | Path, ...]:
        """Arguments that name the network and the system."""
        return "--hardware", self.hardware, "--workload", self.network

    @property
    def latency(self) -> int:
        """Latency of the run in cycles."""
        return int(self.summary["latency_cycles"])

    def expect(self, holds: bool, *what: object) -> None:
        """Record an error unless the statement holds."""
        self.tally.counts["statements"] += 1
        if not holds:
            self.tally.wrong.append(" ".join(map(str, what)))

    def judge(self) -> None:
        """Make the run and check all statements on it; a network that does not fit its system is only counted."""
        try:
            text = self.planned() if self.seed % 2 else self.scheduled()
        except VerbError as error:
            if any(reason in str(error) for reason in REFUSED):
                self.tally.counts["does not fit"] += 1
                return
            raise
        self.tally.counts["runs"] += 1
        self.summary: dict[str, Any] = json.loads((self.out / "summary.json").read_text())["payload"]
        self.bound_of_text(text, self.summary)
        self.judge_coverage()
        self.judge_explanation()
        self.judge_page()
        if self.seed % ADVISED < 2:
            self.judge_advice()

    def scheduled(self) -> str:
        """The output of `schedule` for an allocation from `allocate`, with some layers fixed."""
        entries, tiling = random_tiling(self.draw)
        self.fixed = self.draw.choice((0, 0, 1, 2))
        names = [node.name for node in RandomNetwork(random.Random(self.seed)).nodes][: self.fixed]
        compute = [number for number, file in self.cores.items() if "vector" not in file]
        for name in names:
            entry = {"name": name, "core_allocation": [self.draw.choice(compute)], "core_allocation_is_fixed": True}
            entries.insert(0, entry | {"intra_core_tiling": entries[-1]["intra_core_tiling"]})
        self.mapping = write_mapping(self.folder, *entries)
        self.schedule_words = tuple(random_options(self.draw))
        self.cost_words: tuple[str, ...] = FAST
        self.cns_words = tuple(tiling)
        self.cut_and_cost(self.out, self.hardware)
        run = ("--cns", self.out, "--costs", self.out / "cost", "-o", self.out)
        said("allocate", *self.given, "--mapping", self.mapping, *run, *GA, *self.schedule_words)
        chosen = ("--core-allocation", self.out / "allocation.json")
        return said("schedule", *self.given, "--mapping", self.mapping, *run, *chosen, *self.schedule_words)

    def cut_and_cost(self, folder: Path, hardware: Path) -> None:
        """Write the CNs and cost tables into a folder."""
        given = ("--hardware", hardware, "--workload", self.network, "--mapping", self.mapping)
        said("cns", *given, *self.cns_words, "-o", folder)
        for name in dict.fromkeys(Path(file).stem for file in self.cores.values()):
            table = folder / "cost" / f"{name}.jsonl"
            said("cost", *given, "--core", name, "--cns", folder, *self.cost_words, "-o", table)

    def planned(self) -> str:
        """Check the output of `fuse`, and return the output of `schedule` for the plan."""
        text = said("fuse", *self.given, *PLANS, "-o", self.out)
        self.mapping = self.out / "mapping.yaml"
        document = json.loads((self.out / "fusion.json").read_text())["payload"]
        words = {verb: tuple(shlex.split(line)) for verb, line in document["reproduce"].items()}
        self.cns_words, self.cost_words = words["cns"], (*words["cost"], "--no-store")
        self.schedule_words = words["schedule"]
        self.bound_of_text(text, document)
        self.expect(document["lower_bound"]["latency_cycles"] <= document["latency_cycles"], document["lower_bound"])
        self.judge_layer_by_layer(text, document)
        run = ("--cns", self.out, "--costs", self.out / "cost", "-o", self.out)
        told = said("schedule", *self.given, "--mapping", self.mapping, *run, *self.schedule_words)
        summary = json.loads((self.out / "summary.json").read_text())["payload"]
        for name in ("latency_cycles", "energy_pj"):
            self.expect(summary[name] == document[name], name, summary[name], document[name])
        bound, of_one = document["lower_bound"], summary["lower_bound"]
        self.expect(bound["latency_cycles"] <= of_one["latency_cycles"], "bounds", bound, of_one)
        is_same = (bound["latency_cycles"], bound["energy_pj"]) == (of_one["latency_cycles"], of_one["energy_pj"])
        self.expect(is_same or bound["covers"] != of_one["covers"], "two bounds of one scope", bound, of_one)
        page = (self.out / "fusion.html").read_text()
        for number in (f"{document['latency_cycles']:,}", f"{bound['latency_cycles']:,}", bound["covers"]):
            self.expect(number in page, "fusion.html does not say", number)
        return told

    def judge_layer_by_layer(self, text: str, document: dict[str, Any]) -> None:
        """Check that the baseline of `fuse` is the best of all its plans without fusion."""
        rows = list(csv.DictReader(io.StringIO((self.out / "fusion.csv").read_text())))
        layers = len(document["layers"])
        alone = [int(row["latency_cycles"]) for row in rows if row["stacks"] == str(layers) and row["latency_cycles"]]
        best = min(int(row["latency_cycles"]) for row in rows if row["latency_cycles"])
        self.expect(document["latency_cycles"] == best, "found", document["latency_cycles"], "looked at", best)
        found = TIMES.search(text)
        self.expect((found is None) == (not alone), "layer by layer:", text)
        if found is not None:
            self.expect(int(found["cycles"].replace(",", "")) == min(alone), found[0], alone)
            self.expect(found["latency"] == f"{min(alone) / document['latency_cycles']:.2f}", found[0], alone)

    def bound_of_text(self, text: str, made: dict[str, Any]) -> None:
        """Check that the line on bounds has the artifact's numbers, and the gaps that follow from them."""
        bound, found = made["lower_bound"], BOUND.search(text)
        self.expect(found is not None, "no bound in", text)
        if found is None:
            return
        self.expect(found["covers"] == bound["covers"], found[0], bound)
        self.expect(int(found["cycles"].replace(",", "")) == bound["latency_cycles"], found[0], bound)
        shown = float(found["energy"].replace(",", ""))
        exact = bound["energy_pj"] / 1e6
        self.expect(abs(shown - exact) <= max(0.05 if exact >= 100 else 0.0, 5e-4 * exact), found[0], bound)
        for name, unit in (("latency", "latency_cycles"), ("energy", "energy_pj")):
            gap = 1 - bound[unit] / made[unit]
            self.expect(found[f"{name}_gap"] == f"{gap:.1%}", found[0], made[unit], bound[unit])

    def judge_coverage(self) -> None:
        """Check the stated scope of the run's bound by counting choices in the cost tables and the mapping file."""
        choices = self.choices()
        decided = sum(len(one) == 1 for one in choices)
        covers = self.summary["lower_bound"]["covers"]
        expected = ONE if decided == len(choices) else SOME if decided else ALL
        self.expect(covers.startswith(expected), covers, "of", choices)
        if expected == SOME:
            self.expect(f"({decided} of {len(choices)} parts" in covers, covers, "of", choices)
        self.tally.counts[f"bounds over {expected}"] += 1

    def choices(self) -> list[list[int]]:
        """[part] allowed cores: those that the mapping file names, among those that can run its CNs."""
        graph = json.loads((self.out / "cn_graph.json").read_text())["payload"]
        group = np.load(self.out / "cn_graph.npz")["group"]
        made = np.load(self.out / "schedule.npz")
        runtime, row = made["costs.runtime_cycles"], made["graph.cost_row"]
        entries = {entry["name"]: entry for entry in yaml.safe_load(self.mapping.read_text())}
        found = []
        for layer in graph["layers"]:
            entry = entries.get(layer["name"]) or entries["default"]
            cns = range(layer["first_cn"], layer["first_cn"] + layer["cn_count"])
            named = entry.get("core_allocation") or list(self.cores)
            for part in sorted({int(group[cn]) for cn in cns}):
                own = [cn for cn in cns if group[cn] == part]
                cores = named
                if entry.get("core_allocation_is_fixed") and len(named) > 1:
                    cores = [named[part]]
                found.append([core for core in sorted(set(cores)) if all(runtime[row[cn], core] > 0 for cn in own)])
        return found

    def judge_explanation(self) -> None:
        """Check the stated limit of the run, and how cores spend its cycles."""
        self.explained = said("explain", self.out)
        found = json.loads(said("explain", self.out, "--json"))["several_cores"]
        made = np.load(self.out / "schedule.npz")
        latency = self.latency
        busy = made["schedule.end_cycles"] - made["schedule.start_cycles"]
        for place, core in enumerate(self.cores):
            rows = [row for row in found["core_cycles"] if row["core"].startswith(f"{core}: ")]
            self.expect(sum(row["cycles"] for row in rows) == latency, "cycles of core", core, rows)
            at_work = sum(row["cycles"] for row in rows if row["cause"] in BUSY_CAUSES)
            own = int(busy[made["schedule.allocation"] == place].sum())
            self.expect(at_work == own, "core", core, "is busy for", at_work, "and runs nodes for", own)
        self.judge_limits(found["limits"])

    def judge_limits(self, limits: dict[str, Any]) -> None:
        """Check that each doubled part saves as stated, that none is missing, and that the best is named."""
        latency = self.summary["latency_cycles"]
        self.expect(not limits["not_known"], limits["not_known"])
        told = {(row["kind"], row["name"]): row["gain_cycles"] for row in limits["doubled"]}
        true = Doubled(read_schedule(self.out / "schedule.npz"), self.words_of_options())
        by_kind: dict[str, list[int]] = {}
        for (kind, _), gain in told.items():
            by_kind.setdefault(kind, []).append(gain)
        singles = true.singles()
        for kind in {**by_kind, **singles}:
            values = sorted(by_kind.get(kind, [])), sorted(singles.get(kind, []))
            self.expect(values[0] == values[1], "doubled", kind, *values)
        every = sorted((gain for gains in singles.values() for gain in gains), reverse=True)
        best = every[0] if every else 0
        found = LIMIT.search(self.explained)
        if best > 0:
            self.expect(found is not None and int(found["cycles"].replace(",", "")) == best, found, "best", best)
            self.expect(found is not None and told_share(found["share"], best / latency), found, best / latency)
            ties = every.count(best) - 1
            self.tally.counts["limits tie"] += ties > 0
            if found is not None:
                more = re.search(r"\(or (\d+) others?\)", found["part"])
                self.expect(ties == (int(more[1]) if more else 0), found["part"], "of", every)
            return
        self.tally.counts["no single part helps"] += 1
        self.expect("doubling a single part saves nothing" in self.explained, self.explained)
        pair = true.best_pair()
        if pair > 0:
            self.tally.counts["two parts together help"] += 1
            self.expect(found is not None and int(found["cycles"].replace(",", "")) == pair, found, "pair", pair)
        elif found is not None:
            self.expect(len(limits.get("together", ())) > 2, found, "no pair helps")

    def words_of_options(self) -> ScheduleOptions:
        """The options of the schedule, read from its summary."""
        settings = self.summary["settings"]
        graph = json.loads((self.out / "cn_graph.json").read_text())["payload"]
        ids = [layer["node_id"] for layer in graph["layers"]]
        columns = {name: place for place, name in enumerate(MEMORY_OPERANDS)}
        operands = tuple(sorted(columns[LINKS[one]] for one in settings["operands_to_prefetch"]))
        return ScheduleOptions(
            scheduler_candidate_selection=settings["scheduler_candidate_selection"],
            stack_order=settings["stack_order"],
            prefetch_results=settings["prefetch_results"],
            share_divisor=settings["share_divisor"],
            operands_to_prefetch=operands,
            layers_by_off_chip=tuple(sorted(ids.index(one) for one in settings["layers_by_off_chip"])),
            record=False,
        )

    def judge_page(self) -> None:
        """Check that the page of the run agrees with the verbs."""
        said("page", self.out, "-o", self.folder / "page.html")
        (data,) = [
            json.loads(text)
            for text in re.findall(
                r'<script type="application/json"[^>]*>(.*?)</script>', (self.folder / "page.html").read_text(), re.S
            )
        ]
        (detail,), (row,) = data["details"].values(), data["rows"]
        bound, latency = self.summary["lower_bound"], self.summary["latency_cycles"]
        self.expect(detail["bound"]["covers"] == bound["covers"], detail["bound"])
        self.expect(detail["bound"]["latency"] == bound["latency_cycles"], detail["bound"])
        self.expect(max(cycles for _, cycles in detail["bound"]["terms"]) == bound["latency_cycles"], detail["bound"])
        for line in detail["limits"]["lines"]:
            self.expect(line in self.explained, "the page says", line)
        for _, cycles in detail["work"]["cores"]:
            self.expect(sum(cycles) == latency, detail["work"])
        found = LIMIT.search(self.explained)
        if found is not None and "together" not in found[0]:
            self.expect(any(str(cell).endswith(f"-{found['share']}") for cell in row), row, found[0])
        for (_, cycles, _, gap), told in zip(detail["baselines"], self.summary["baselines"], strict=True):
            self.expect(cycles == told["latency_cycles"], told)
            self.expect(abs(told["speedup"] - cycles / latency) < 1e-9, told)
            if gap is not None:
                self.expect(abs(gap / 100 - (1 - bound["latency_cycles"] / cycles)) < TOLD, told, gap)

    def judge_advice(self) -> None:
        """Check the gains and the order of the advice, and that runs on the changed files give the stated results."""
        given = (*self.given, "--mapping", self.mapping)
        text = said("advise", self.out, *given, "-o", self.folder / "advice")
        advice = json.loads((self.folder / "advice" / "advice.json").read_text())
        helpful = [one for one in advice["changes"] if one["number"] in advice["helpful"]]
        gains = [max(one["same_mapping_gain"] or 0.0, one["new_search_gain"] or 0.0) for one in helpful]
        self.expect(gains == sorted(gains, reverse=True), gains)
        known = advice["best_known"] or advice
        for one in advice["changes"]:
            told, gain = one["key"], one["hardware_gain"] or 0.0
            cheaper = one["same_mapping_gain"] or 0.0
            if one["new_search_latency_cycles"] is not None:
                cheaper = max(cheaper, (known["latency_cycles"] - one["new_search_latency_cycles"]) / self.latency)
            self.expect(abs(gain - cheaper) < TOLD, told, "gains", gain, "and not", cheaper)
            self.expect(one["kind"] != "energy" or gain <= TOLD, told, "saves no cycle, and is said to save", gain)
            self.expect((one["held_latency_cycles"] or self.latency) >= known["latency_cycles"], told, one, known)
        self.expect(bool(helpful) != ("No single change" in text), text)
        self.tally.counts["advised"] += 1
        self.tally.counts["no single change helps"] += not helpful
        rows = [*helpful[:1], *(one for one in advice["changes"] if one["number"] in advice["for_nothing"][:1])]
        for one in rows:
            changed = self.folder / f"hw{one['number']}"
            shutil.copytree(self.hardware.parent, changed)
            file = changed / Path(one["file"]).name
            said("advise", self.out, *given, "--write", str(one["number"]), file)
            cycles = self.on(changed / self.hardware.name, self.folder / f"out{one['number']}")
            told = one["same_mapping_latency_cycles"]
            self.expect(cycles == told, one["key"], one["before"], one["after"], "gives", cycles, "not", told)

    def on(self, hardware: Path, folder: Path) -> int:
        """Cycles of the run on other hardware, with unchanged tiles and allocation and new cost tables."""
        self.cut_and_cost(folder, hardware)
        given = ("--hardware", hardware, "--workload", self.network, "--mapping", self.mapping)
        run = ("--cns", folder, "--costs", folder / "cost", "-o", folder)
        chosen: tuple[str | Path, ...] = ()
        if (self.out / "allocation.json").is_file():
            fixed = self.folder / "fixed.yaml"
            fixed.write_text((self.out / "mapping.yaml").read_text())
            given = (*given[:-1], fixed)
        said("schedule", *given, *run, *chosen, *self.schedule_words)
        return int(json.loads((folder / "summary.json").read_text())["payload"]["latency_cycles"])


def told_share(text: str, share: float) -> bool:
    """Whether a text is the printed form of a share."""
    return text == "<0.1%" if share < 0.0005 else text == f"{share:.1%}"


class Doubled:
    """Latencies of a schedule after some parts of its system are doubled."""

    def __init__(self, made: ScheduleArtifact, options: ScheduleOptions) -> None:
        self.made, self.options = made, options
        self.latency = made.schedule.latency_cycles
        if self.gain([]):
            raise AssertionError("the options of the summary do not give the schedule")

    def parts(self) -> list[tuple[str, tuple[int, ...]]]:
        """(kind, places) of all parts that can be doubled.

        A part is the cores of one file, a link that carries data, or used memories of one name in cores of the same
        files.
        """
        made, system = self.made, self.made.problem.system
        files = made.names.core_files
        used = set(made.schedule.allocation.tolist())
        found = [
            ("core", tuple(core for core in sorted(used) if files[core] == file))
            for file in dict.fromkeys(files[core] for core in sorted(used))
        ]
        moved = made.schedule.link_bits.sum(axis=0)
        found += [
            ("link", (link,)) for link, bits in enumerate(moved) if bits and system.link_bits_per_cycle[link] < 2**60
        ]
        groups: dict[Any, list[int]] = {}
        for memory, peak in enumerate(made.schedule.peak_bits):
            users = [core for core, own in enumerate(system.core_memory.tolist()) if memory in own]
            if memory != system.off_chip_memory and peak and users:
                key = (frozenset(files[core] for core in users), made.names.memory_names[memory].split(": ", 1)[-1])
                groups.setdefault(key, []).append(memory)
        for places in groups.values():
            found += [("room", tuple(places)), ("word", tuple(places))]
        return found

    def gain(self, parts: Sequence[tuple[str, tuple[int, ...]]]) -> int:
        """Cycles that doubling all of these parts saves."""
        problem = self.made.problem
        runtime = problem.costs.runtime_cycles.copy()
        tables = {name: getattr(problem.system, name).copy() for name in TABLES}
        for kind, places in parts:
            for place in places:
                if kind == "core":
                    can_run = runtime[:, place] > 0
                    runtime[can_run, place] = (runtime[can_run, place] + 1) // 2
                elif kind == "link":
                    tables["link_bits_per_cycle"][place] *= 2
                    if self.made.names.link_kinds[place] == OFFCHIP_PORT:
                        tables["memory_read_bits"][problem.system.off_chip_memory] *= 2
                        tables["memory_write_bits"][problem.system.off_chip_memory] *= 2
                elif kind == "room":
                    tables["memory_capacity_bits"][place] *= 2
                else:
                    tables["memory_read_bits"][place] *= 2
                    tables["memory_write_bits"][place] *= 2
        changed = replace(
            problem, costs=replace(problem.costs, runtime_cycles=runtime), system=replace(problem.system, **tables)
        )
        try:
            return self.latency - Scheduler(changed, self.options)(self.made.schedule.allocation).latency_cycles
        except MappingError:
            return 0

    def singles(self) -> dict[str, list[int]]:
        """Kind -> cycles that each part alone saves."""
        found: dict[str, list[int]] = {}
        for part in self.parts():
            found.setdefault(part[0], []).append(self.gain([part]))
        return found

    def best_pair(self) -> int:
        """Cycles that the best pair of parts saves."""
        return max((self.gain(pair) for pair in itertools.combinations(self.parts(), 2)), default=0)
