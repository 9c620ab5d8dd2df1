"""Verdicts on the command line, checked with the plain model and against each other.

Random layers on a random core go through the verbs `map`, `explain`, `advise`, `compare`, `page` and `report`. All
their statements on limits, gains, gaps and bounds, also in JSON, CSV and HTML, are read back. They are compared with
the plain model's costs for the mappings of the run. Runs of `tokens` are those of `printed_tokens.py`.
"""

import csv
import json
import math
import random
import re
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.workload.layer import Layer
from tilewright.workload.yaml_reader import read_workload_yaml

from tests.plain.plain_runs import PARTS, PlainRun
from tests.plain.printed_advice import judge_advice
from tests.plain.printed_ledgers import judge_array, judge_energy
from tests.plain.printed_limits import Judge, least_cycles
from tests.plain.printed_text import (
    SHARE,
    Row,
    VerbError,
    is_close,
    is_count,
    is_share,
    number,
    page_data,
    said,
    table,
)
from tests.plain.printed_tokens import judge_tokens
from tests.plain.tally import Tally
from tests.plain.written_problems import NAMES, WrittenProblem

KINDS_OF_SEEDS = ("any", "narrow", "mirror", "tiny", "tiny")
ENGINES = ("loma", "loma", "exact", "best")
EFFORT = ("--effort", "20000")
TOKENS_EVERY, PAGED_EVERY = 10, 2
HEAD = re.compile(r"(?P<energy>\S+) µJ, (?P<cycles>[\d,]+) cycles")
PROVEN = re.compile(
    r"of each layer(?: \([^)]*\))?: "
    r"(?:no other mappings give less|other mappings give (?:at most (?P<gap>[\d.]+)%|less than 0.01%) less); "
    r"the optimum is proven for (?P<proven>\d+) of (?P<of>\d+) distinct layers"
)
SMALLER = re.compile(
    r"(?P<goal>\S+) of the network: "
    r"(?:no other mappings give less|other mappings give (?:at most (?P<gap>[\d.]+)%|less than 0.01%) less), among"
)
FALLS = re.compile(r"(latency|energy) can fall by ([\d.]+)% for (-?[\d.]+)% more (?:energy|cycles)")
SAVING = re.compile(
    rf"(?P<ports>.+): twice as wide (?:it saves|they save) (?P<cycles>[\d,]+) cycles, (?P<share>{SHARE}) of the latency"
)
NO_PORT = "No single port would save 1% of the latency if it were twice as wide."


LITTLE = "less than 0.01%"


def is_gap(found: re.Match[str], gap: float) -> bool:
    """True if a sentence states a gap, which is a share, to two digits of a percentage."""
    if LITTLE in found[0]:
        return 0 < gap < 0.0001
    return abs(float(found["gap"] or 0) / 100 - gap) < 0.000051 and (gap >= 0.0001 or not found["gap"])


def try_printed_verdicts(seed: int) -> Tally:
    """Check the output of verbs for the run of a seed; every tenth seed also checks `tokens` of a language model."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        case = PrintedRun(seed, Path(folder))
        case.judge()
        tally.add(case.tally)
        if seed % TOKENS_EVERY == 0:
            tally.add(judge_tokens(seed, Path(folder) / "tokens"))
    return Tally(tally.counts, [f"seed {seed}: {text}" for text in tally.wrong])


class PrintedRun(Judge):
    """A run of a seed, and the errors in the output of verbs on it."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__()
        self.seed, self.folder = seed, folder
        self.rng = random.Random(seed)
        self.objective = self.rng.choice(("latency", "latency", "latency", "energy", "EDP"))
        self.engine = self.rng.choice(ENGINES)
        self.free = self.engine != "loma" and self.rng.random() < 0.5
        self.is_open = self.engine == "best" and self.rng.random() < 0.4
        self.out = folder / "run"
        while True:
            problem = WrittenProblem(self.rng, KINDS_OF_SEEDS[seed % len(KINDS_OF_SEEDS)])
            self.model = problem.model
            self.unrollings = dict(zip(NAMES, problem.unrollings, strict=False))
            self.files = problem.write(folder)
            try:
                self.mapped = self.map(self.engine, self.objective, self.out)
                break
            except VerbError:
                self.tally.counts["problems that do not fit"] += 1
        self.core: Core = read_accelerator(self.files[0]).cores[0]
        nodes = read_workload_yaml(self.files[2]).nodes
        self.network: dict[str, Layer] = {node.layer.name: node.layer for node in nodes if node.layer is not None}
        self.run = PlainRun.read(self.out, self.core, self.network)

    @property
    def given(self) -> tuple[object, ...]:
        """Arguments that name the files."""
        return "--hardware", self.files[0], "--workload", self.files[2], "--mapping", self.files[1]

    def map(
        self, engine: str, objective: str, folder: Path, hardware: Path | None = None, mapping: Path | None = None
    ) -> str:
        """The output of `map`."""
        files = (hardware or self.files[0], mapping or self.files[1])
        given = ("--hardware", files[0], "--workload", self.files[2], "--mapping", files[1])
        words = ("--model", self.model, "--objective", objective, "--temporal-mapping-search-engine", engine)
        words += () if self.is_open else ("--nb-spatial-mappings-generated", "2")
        if engine != "loma":
            words += ("--allocation", "free") if self.free else ()
            words += EFFORT if engine == "best" else ()
        return said("map", "--preset", "zigzag", *given, *words, "--lpf-limit", "4", "--no-store", "-v", "-o", folder)

    def judge(self) -> None:
        """Check all verbs."""
        self.tally.counts["runs"] += 1
        self.judge_map()
        self.judge_network()
        self.judge_layers()
        self.judge_json()
        if self.seed % PAGED_EVERY == 0:
            self.judge_page()
            self.judge_report()
        self.judge_comparison()
        judge_advice(self)
        self.count()

    def count(self) -> None:
        """Count the runs whose verdict is close."""
        singles, latency = self.run.singles(), self.run.latency
        best = max(singles.values(), default=0.0)
        helps = best >= least_cycles(latency)
        kinds = sorted(self.run.kinds().values())
        alike = sum(helps and one == best for one in singles.values()) > 1
        kinds_tie = f"{kinds[-1] / latency:.1%}" == f"{kinds[-2] / latency:.1%}"
        together = not helps and "together twice as wide" in self.explained
        self.tally.counts["two limits tie"] += alike or kinds_tie or together
        self.tally.counts["two limits tie: ports save the same"] += alike
        self.tally.counts["two limits tie: kinds of cycles"] += kinds_tie
        self.tally.counts["two limits tie: only together"] += together
        self.tally.counts["no single port helps"] += not helps
        self.tally.counts["several layers"] += len(self.run.index) > 1

    # map --------------------------------------------------------------------------------------------------------------

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The summary that `map` wrote."""
        found: dict[str, Any] = json.loads((self.out / "summary.json").read_text("utf-8"))["payload"]
        return found

    def judge_map(self) -> None:
        """Check the totals, the table of layers, and what `judge_proofs` checks."""
        self.judge_totals("map", self.mapped)
        rows = table(self.mapped, "net on ")
        self.expect(len(rows) == len(self.run.index), "map -v has rows", rows)
        for row, (name, record, _) in zip(rows, self.run.index, strict=True):
            parts, latency = self.run.parts(record), float(self.run.costs[record].latency_cycles)
            self.expect(row["layer"] == name and is_count(row["latency [cycles]"], latency), "map -v:", row, latency)
            shares = dict(zip(PARTS, ("array use", "spatial stall", "temporal stall", "on-loading", "off-loading",
                                      "drain"), strict=True))  # fmt: skip
            for part, head in shares.items():
                share = number(row[head].removesuffix("%")) / 100
                self.expect(abs(share - parts[part] / latency) < 0.000501, "map -v:", row, head, parts[part] / latency)
        self.judge_proofs()

    def judge_totals(self, verb: str, text: str) -> None:
        """Check energy and cycles in the first line that has them."""
        found = HEAD.search(text)
        if self.expect(found is not None, verb, "has no totals") and found is not None:
            self.expect(is_count(found["cycles"], self.run.latency), verb, found[0], "is", self.run.latency)
            self.expect(is_close(found["energy"], self.run.energy / 1e6, 4), verb, found[0], "is", self.run.energy)

    def judge_proofs(self) -> None:
        """Check what is proven, and that no other search beats the stated gap."""
        searches = [one.record.get("search", {}) for one in self.run.layers]
        found = PROVEN.search(self.mapped)
        proofs = [one for one in searches if "proven" in one]
        self.expect(bool(found) == bool(proofs), "map is silent on proofs", self.mapped)
        if found is None:
            return
        self.tally.counts["runs with proofs"] += 1
        proven = sum(bool(one["proven"]) for one in proofs)
        self.expect((int(found["proven"]), int(found["of"])) == (proven, len(searches)), found[0], proven)
        gap = max(one["gap"] for one in proofs)
        self.expect(is_gap(found, gap), found[0], gap)
        self.expect(proven < len(searches) or gap == 0, found[0], "are all proven")
        whole = SMALLER.search(self.mapped)
        if self.expect(whole is not None, "map is silent on the network:", self.mapped) and whole is not None:
            self.judge_bound(whole)

    def judge_bound(self, whole: re.Match[str]) -> None:
        """Check that no other search ends below the bound of the network."""
        value = self.run.value(self.run.energy, self.run.latency)
        share = 0.0001 if LITTLE in whole[0] else float(whole["gap"] or 0) / 100
        of_run = self.summary["certificate"]["run"]
        self.expect(whole["goal"] == self.objective, whole[0])
        self.expect(math.isclose(of_run["value"], value, rel_tol=1e-9), of_run, value)
        told = 1 - of_run["lower_bound"] / value if value else 0.0
        self.expect(is_gap(whole, told), whole[0], "is", told)
        least = value * (1 - share) * (1 - 0.0001 * bool(whole["gap"]))
        for goal in {"latency", "energy", self.objective}:
            other = self.other(goal)
            if other is None:
                continue
            least_found = self.run.value(other.energy, other.latency)
            self.expect(least_found >= least * (1 - 1e-9), whole[0], goal, "has", least_found, "and not", least)
        self.judge_price(value)

    def other(self, goal: str) -> PlainRun | None:
        """A run of loma for another objective; None if no order fits."""
        folder = self.folder / f"loma-{goal}"
        if not (folder / "summary.json").exists():
            try:
                self.map("loma", goal, folder)
            except VerbError:
                return None
        return PlainRun.read(folder, self.core, self.network)

    def judge_price(self, value: float) -> None:
        """Check the possible fall of latency and energy at the ends of the front, and the least values."""
        lines = [
            line
            for line in self.mapped.splitlines()
            if "can fall by" in line or (" found" in line and " of the least " in line)
        ]
        ends = self.summary["certificate"].get("ends")
        self.expect(bool(lines) == bool(ends), "map is silent on the ends", self.mapped)
        if not ends:
            return
        del value
        now = {"latency": self.run.latency, "energy": self.run.energy}
        for goal, name in (("latency", "latency_cycles"), ("energy", "energy_pj")):
            found = {one[0]: one for one in FALLS.findall(lines[0])}.get(goal)
            fall = 1 - ends[goal][name] / now[goal]
            told = float(found[1]) / 100 if found else 0.0
            self.expect(abs(told - fall) < (0.000051 if found else 0.000501), lines[0], goal, "falls by", fall)
            if (other := self.other(goal)) is None:
                continue
            least = {"latency": other.latency, "energy": other.energy}[goal]
            self.expect(least >= ends[goal]["lower_bound"] * (1 - 1e-9), lines[0], goal, "is", least, ends)

    # explain ----------------------------------------------------------------------------------------------------------

    @cached_property
    def explained(self) -> str:
        """The output of `explain`, which also writes its JSON and tables."""
        return said("explain", self.out, *self.given, "-o", self.folder / "explained", "--only", "tables") and said(
            "explain", self.out, *self.given
        )

    def judge_network(self) -> None:
        """Check the tables of all layers."""
        text, latency = self.explained, self.run.latency
        self.judge_totals("explain", text)
        self.judge_causes(text, None)
        judge_energy(self, text, None)
        judge_array(self, text)
        rows, singles = table(text, "A port twice as wide"), self.run.singles()
        told = {row["port"]: row for row in rows}
        best = max(singles.values(), default=0.0)
        limited = self.limited_layers()
        for name, gain in singles.items():
            row = told.get(name)
            is_told = gain >= least_cycles(latency) or limited.get(name, 0) > 0
            self.expect(is_told == (row is not None), "explain:", name, gain, row)
            if row is not None:
                self.expect(is_count(row["saves cycles"], gain), row, gain)
                self.expect(is_share(row["share"], gain / latency), row, gain / latency)
                count = f"{limited.get(name, 0)} of {len(self.run.index)}"
                self.expect(row["limits layers"] == count, "explain:", row, "limits", count)
        self.expect((NO_PORT in text) == (best < least_cycles(latency)), "explain: best port", best, "of", latency)
        self.judge_set(text, None)
        self.judge_counts(text, singles, told)
        for row in table(text, "Layers, the longest first"):
            self.judge_row_of_layers(row)

    def limited_layers(self) -> dict[str, int]:
        """Port -> number of layers that it limits.

        A port limits a layer if widening it saves enough cycles and no other port saves more.
        """
        found: dict[str, int] = {}
        for _, record, _ in self.run.index:
            singles, latency = self.run.singles(record), float(self.run.costs[record].latency_cycles)
            best = max(singles.values(), default=0.0)
            for name, gain in singles.items():
                if gain == best >= least_cycles(latency):
                    found[name] = found.get(name, 0) + 1
        return found

    def judge_counts(self, text: str, singles: dict[str, float], told: dict[str, Row]) -> None:
        """Check the stated numbers of omitted ports and layers."""
        count = sum(gain > 0 for name, gain in singles.items() if name not in told)
        found = re.search(r"(\d+) other ports? would save less", text)
        self.expect(int(found[1] if found else 0) == count, "explain: other ports", found and found[0], count)
        alone = together = 0
        for _, record, _ in self.run.index:
            latency = float(self.run.costs[record].latency_cycles)
            best = max(self.run.singles(record).values(), default=0.0)
            if best < least_cycles(latency):
                alone += 1
                together += self.run.smallest(least_cycles(latency), record) is not None
        found = re.search(r"in (\d+) of (\d+) layers, no single port is the limit", text)
        self.expect(int(found[1] if found else 0) == alone, "explain:", found and found[0], alone)
        found = re.search(r"(\d+) of these layers would be faster", text)
        self.expect(int(found[1] if found else 0) >= together, "explain:", found and found[0], together)
        if found := re.search(r"the other (?:(\d+) layers|layer) would save less than", text):
            self.expect(0 < int(found[1] or 1) <= alone - together, "explain:", found[0], alone - together)

    def judge_causes(self, text: str, record: int | None) -> None:
        """Check that cycles by cause and energies add up, and equal the plain model's."""
        causes = self.run.causes(record)
        latency = self.run.latency if record is None else float(self.run.costs[record].latency_cycles)
        rows = {row["cause"]: row for row in table(text, "Cycles by cause")}
        all_row = rows.pop("all", {"cycles": "0"})
        self.expect(is_count(all_row["cycles"], latency), "explain:", all_row, latency)
        self.expect(rows.keys() == causes.keys(), "explain: causes", list(rows), causes)
        for name, row in rows.items():
            cycles = causes.get(name, math.nan)
            self.expect(is_count(row["cycles"], cycles) and is_share(row["share"], cycles / latency), row, cycles)
        order = [number(row["cycles"]) for row in rows.values()]
        self.expect(order == sorted(order, reverse=True), "explain: causes are not in order", rows)

    def judge_row_of_layers(self, row: Row) -> None:
        """Check a row of the table of layers."""
        name, _, times = row["layer"].partition(" x ")
        count = int(times or 1)
        record = next(place for layer, place, _ in self.run.index if layer == name)
        latency = float(self.run.costs[record].latency_cycles)
        self.expect(is_count(row["cycles"], latency * count), "explain:", row, latency)
        self.expect(is_share(row["share"], latency * count / self.run.latency), row, latency)
        self.judge_limit("explain, table of layers", row["limited by"], record)
        found = re.fullmatch(rf"(.+) ({SHARE})( each)?", row["largest cause"])
        causes = self.run.causes(record)
        most = max(causes.values())
        self.expect(
            found is not None
            and is_share(found[2], most / latency)
            and all(is_share(found[2], causes.get(one, math.nan) / latency) for one in found[1].split(" and ")),
            "explain:",
            row["largest cause"],
            causes,
        )

    def judge_layers(self) -> None:
        """Check `explain --layer` for each layer with its own record."""
        for record, layer in enumerate(self.run.layers):
            name = self.rng.choice([one for one, place, _ in self.run.index if place == record])
            text = said("explain", self.out, *self.given, "--layer", name)
            self.expect(name in layer.names, name, layer.names)
            self.judge_causes(text, record)
            judge_energy(self, text, record)
            latency, singles = float(self.run.costs[record].latency_cycles), self.run.singles(record)
            rows = table(text, "Ports [cycles]")
            self.expect({row["port"] for row in rows} == set(singles), "explain --layer:", rows, singles)
            for row in rows:
                gain = singles.get(row["port"], math.nan)
                self.expect(is_count(row["twice as wide saves"], gain), "explain --layer:", row, gain)
                self.expect(is_share(row["share"], gain / latency), "explain --layer:", row, gain / latency)
            self.judge_waits(rows, record)
            (limit,) = re.findall(r"^  limited by: (.*)$", text, re.M)
            self.judge_limit("explain --layer", limit, record)
            self.judge_set(text, record)

    def judge_waits(self, rows: list[Row], record: int) -> None:
        """Check the number of cycles in which the array waits for each port that is busy."""
        stalls = {}
        for (k, p), stall in self.run.costs[record].port_stalls.items():
            memory = self.core.memories[k]
            stalls[f"{memory.name} {memory.ports[p].name}"] = max(0, stall)
        for row in rows:
            if row["busy"]:
                stall = stalls.get(row["port"], 0)
                self.expect(is_count(row["the array waits"], stall), "explain --layer:", row, stall)

    def judge_json(self) -> None:
        """Check that the JSON of `explain` agrees with its text."""
        self.data: dict[str, Any] = json.loads((self.folder / "explained/bottlenecks.json").read_text("utf-8"))
        printed = json.loads(said("explain", self.out, *self.given, "--json"))
        self.expect(printed["limits"] == self.data["limits"], "explain --json and bottlenecks.json differ")
        self.judge_limit("bottlenecks.json", self.data["network_limit"]["limited_by"], None)
        rows = {row["layer"].split(" x ")[0]: row["limited by"] for row in table(self.explained, "Layers, the longest")}
        for name, record, _ in self.run.index:
            limit = self.data["limits"][name]
            self.judge_limit("bottlenecks.json", limit["limited_by"], record)
            self.expect(rows.get(name, limit["limited_by"]) == limit["limited_by"], rows, limit["limited_by"])
        with (self.folder / "explained/ports.csv").open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                record = next(place for name, place, _ in self.run.index if name == row["layer"])
                gain = self.run.singles(record).get(f"{row['memory']} {row['port']}", 0.0)
                self.expect(math.isclose(float(row["gain_cycles"] or 0), gain, abs_tol=1e-6), "ports.csv:", row, gain)

    # page, report, compare --------------------------------------------------------------------------------------------

    def judge_page(self) -> None:
        """Check that the page agrees with `explain`."""
        said("page", self.out, "-o", self.folder / "page.html")
        data = page_data(self.folder / "page.html")
        (detail,) = data["details"].values()
        limit, latency = detail["limit"], self.run.latency
        if not self.expect("lines" in limit, "page:", limit):
            return
        self.judge_limit("page", limit["cause"], None)
        self.expect(limit["cause"] == self.data["network_limit"]["limited_by"], "page:", limit["cause"])
        causes = self.run.causes()
        found = re.match(
            rf"Most cycles go to: (.+?) ({SHARE})( each)?(?: \(next: (.+) ({SHARE})\))?\.", limit["lines"][0]
        )
        if self.expect(found is not None, "page:", limit["lines"]) and found is not None:
            named = found[1].split(" and ")
            self.expect(all(is_share(found[2], causes.get(one, math.nan) / latency) for one in named), found[0], causes)
            self.expect(is_share(found[2], max(causes.values()) / latency), found[0], causes)
            rest = [cycles for name, cycles in causes.items() if name not in named]
            if found[4] is None:
                self.expect(not rest, found[0], causes)
            else:
                self.expect(is_share(found[5], max(rest) / latency), found[0], causes)
        self.judge_saving(limit["lines"][2])
        singles, limited = self.run.singles(), self.limited_layers()
        for name, gain, count in limit["ports"]:
            self.expect(math.isclose(gain or 0, singles[name], abs_tol=1e-6, rel_tol=1e-8), "page:", name, gain)
            self.expect(count == limited.get(name, 0), "page:", name, "limits", limited.get(name, 0), "and not", count)
        told = {name for name, *_ in limit["ports"]}
        self.expect(all(name in told or gain == 0 for name, gain in singles.items()), "page:", told, singles)
        for name, place in detail["layers"]:
            record = next(one for layer, one, _ in self.run.index if layer == name)
            self.judge_limit("page, table of layers", detail["records"][place]["limit"], record)

    def judge_saving(self, line: str) -> None:
        """Check the line on the cycles that one wider port, or several, would save."""
        latency, best = self.run.latency, max(self.run.singles().values())
        found = SAVING.match(line)
        if found is None:
            is_silent = "doubling the width of one port, or of several ports together, saves no cycles" in line
            self.expect(is_silent and best <= 0 and self.run.smallest(1e-9) is None, "page:", line, best)
            return
        names = found["ports"].removeprefix("together: ").split(" and ")
        named = re.sub(r" \(or .*\)", "", names[0]) if len(names) == 1 else ""
        ports = frozenset(tuple((named or one).split()) for one in names)
        saved = self.run.saved(ports)  # type: ignore[arg-type]
        self.expect(is_count(found["cycles"], saved), "page:", line, saved)
        self.expect(
            is_share(found["share"], saved / latency) and (len(names) > 1 or saved == best), "page:", line, saved
        )

    def judge_report(self) -> None:
        """Check the tables of `report`."""
        said("report", self.out, "-o", self.folder / "report", "--only", "tables")
        with (self.folder / "report/layers.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        self.expect([row["layer"] for row in rows] == [name for name, *_ in self.run.index], "report:", rows)
        for row, (_, record, _) in zip(rows, self.run.index, strict=True):
            parts = self.run.parts(record)
            for part, cycles in parts.items():
                self.expect(math.isclose(float(row[f"{part}_cycles"]), cycles, abs_tol=1e-6), "report:", row, parts)

    def judge_comparison(self) -> None:
        """Check a comparison with a run of another search: its numbers, and that differences add up."""
        if (other := self.other(self.objective)) is None:
            return
        text = said("compare", self.out, self.folder / f"loma-{self.objective}")
        lines = [line for line in text.splitlines() if line.startswith(" latency [cycles]")]
        self.expect(len(lines) == 1, "compare:", text)
        a, b, difference, *_ = lines[0].removeprefix(" latency [cycles]").split()
        for told, cycles in ((a, self.run.latency), (b, other.latency), (difference, other.latency - self.run.latency)):
            self.expect(is_count(told, cycles), "compare:", lines[0], cycles)
        for title in ("Latency by term [cycles]", "Latency by layer [cycles]"):
            rows_of_title = table(text, title)
            kept = [row for row in rows_of_title if row[title.split()[2]] != "total"]
            whole = sum(number(row["difference"]) for row in kept)
            self.expect(
                not rows_of_title or abs(whole - (other.latency - self.run.latency)) <= 0.5 * len(kept) + 0.5,
                "compare:",
                rows_of_title,
            )
        sizes = [self.run.parts(), other.parts()]
        for row in table(text, "Latency by term [cycles]"):
            part = next((one for one in PARTS if one.replace("_", " ") == row["term"]), None)
            if part is not None:
                good = is_count(row["A"], sizes[0][part]) and is_count(row["B"], sizes[1][part])
                self.expect(good, "compare:", row, sizes)
