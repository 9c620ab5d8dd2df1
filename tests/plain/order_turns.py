"""Changes that, by `compare`, reverse the order of two runs, tried on changed files.

The changed hardware is written, and the mappings of the runs are evaluated on it or searched again.
"""

import json
import math
import random
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tilewright.hardware.core import Core, single_core
from tilewright.hardware.source import parse_accelerator

from tests.plain.default_answers import CORES, LINKS, mapping_file, random_network
from tests.plain.printed_text import VerbError, said
from tests.plain.tally import Tally

MEASURES = {"energy": (1, 0), "latency": (0, 1), "EDP": (1, 1)}
RUNS = "AB"
LARGEST = 10.0
"""Largest factor, up or down, on a number without a range."""
BEYOND, SHORT = 1e-6, 0.9
"""Relative distance beyond a change, and a part of the change that is not enough."""
WIDTHS = 25
"""Random bandwidths that are tried if the text says that none reverses the order."""
EQUAL = 1e-7
BATCHES = (2, 5, 12)
IN_MEMORY = ("aimc", "dimc")
"""Cores whose clock and costs follow from circuits, so that a file cannot change one of them alone."""
SEARCH = ("--effort", "3000", "--no-store")


@dataclass(frozen=True)
class Number:
    """A number in one or both hardware files: how to multiply it, and the limits of the factor."""

    kind: str
    parts: tuple[tuple[str, ...], tuple[str, ...]]
    low: float = 1 / LARGEST
    high: float = LARGEST
    has_range: bool = False
    """True if the library of costs gives the range."""


@dataclass
class Run:
    """A run with its files; its mappings are evaluated on changed hardware."""

    name: str
    folder: Path
    hardware: dict[str, Any]
    network: Path
    mapping: Path
    found: dict[str, tuple[float, float] | None] = field(default_factory=dict)

    @property
    def core(self) -> Core:
        """The core of the unchanged hardware."""
        return single_core(parse_accelerator(self.hardware))

    def search(self, network: Path | None = None, hardware: dict[str, Any] | None = None) -> tuple[float, float] | None:
        """(energy in pJ, latency in cycles) of newly searched mappings; None if no mapping fits."""
        folder = self.folder if network is None and hardware is None else self.folder / "again"
        path = self._written(self.hardware if hardware is None else hardware)
        given = ("--workload", network or self.network, "--mapping", self.mapping, "--hardware", path)
        try:
            told = json.loads(said("map", *given, *SEARCH, "--json", "-o", folder))["summary"]
        except VerbError:
            return None
        return told["energy_pj"], told["latency_cycles"]

    def export(self) -> None:
        """Write the mappings of the run, with fixed memories for all loops."""
        found = self.folder / "found.yaml"
        said("export", self.folder, "--hardware", self._written(self.hardware), "-o", found)
        given = ("--hardware", self._written(self.hardware), "--workload", self.network, "--mapping", found, "--json")
        entries = {entry["name"]: entry for entry in yaml.safe_load(found.read_text("utf-8"))}
        for line in said("evaluate", *given).splitlines():
            record = json.loads(line)
            levels = {
                operand: [sum(map(len, loops[: level + 1])) for level in range(len(loops))]
                for operand, loops in record["temporal_mapping"].items()
            }
            entries[record["layer"]["name"]]["level_boundaries"] = levels
        (self.folder / "fixed.yaml").write_text(yaml.safe_dump(list(entries.values()), sort_keys=False), "utf-8")

    def evaluated(self, hardware: dict[str, Any], is_fixed: bool = False) -> tuple[float, float] | None:
        """(energy in pJ, latency in cycles) of the run's mappings on changed hardware; None if they do not fit."""
        key = json.dumps([hardware, is_fixed])
        if key not in self.found:
            mapping = self.folder / ("fixed.yaml" if is_fixed else "found.yaml")
            given = ("--hardware", self._written(hardware), "--workload", self.network, "--mapping", mapping)
            try:
                records = [json.loads(line) for line in said("evaluate", *given, "--json").splitlines()]
            except VerbError:
                self.found[key] = None
            else:
                totals = [math.fsum(record[name] for record in records) for name in ("energy_pj", "latency_cycles")]
                self.found[key] = totals[0], totals[1]
        return self.found[key]

    def _written(self, hardware: dict[str, Any]) -> Path:
        path = self.folder.with_suffix(".changed.yaml" if hardware is not self.hardware else ".yaml")
        path.write_text(yaml.safe_dump(hardware, sort_keys=False), "utf-8")
        return path


def try_order_turns(seed: int) -> Tally:
    """Try two runs of a random network on two shipped cores with random clocks, costs and widths."""
    tally, rng = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network = folder / "net.yaml"
        network.write_text(yaml.safe_dump(with_batches(random_network(rng)), sort_keys=False), "utf-8")
        runs = _runs(rng, folder, network)
        costs = [run.search() for run in runs]
        if None in costs:
            tally.counts["pairs of which a run has no mapping"] += 1
            return tally
        for run in runs:
            run.export()
        _Pair(seed, rng, runs, tally).check()
    return tally


def with_batches(layers: list[dict[str, Any]], batch: int = 1) -> list[dict[str, Any]]:
    """The layers with a loop over a batch."""
    found = []
    for layer in layers:
        equation = re.sub(r"\b([OI])(?=\[)", r"\1[b]", layer["equation"])
        loops = {"loop_dims": ["B", *layer["loop_dims"]], "loop_sizes": [batch, *layer["loop_sizes"]]}
        found.append({**layer, "equation": equation, **loops})
    return found


def _runs(rng: random.Random, folder: Path, network: Path) -> tuple[Run, Run]:
    pool = [one for one in CORES if one.stem not in IN_MEMORY]
    first = rng.choice(pool)
    second = first if rng.random() < 0.3 else rng.choice(pool)
    clocks = rng.choice((None, None, (200, 200), (200, 350), (500, 120)))
    runs = []
    for place, path in enumerate((first, second)):
        hardware = _varied(rng, yaml.safe_load(path.read_text("utf-8")), clocks and clocks[place])
        own = folder / RUNS[place]
        own.mkdir()
        copied = own / network.name  # `compare` looks for the network beside the run
        copied.write_bytes(network.read_bytes())
        mapping = mapping_file(path)
        if mapping is None or rng.random() < 0.3:
            mapping = own / "mapping.yaml"
            mapping.write_text(yaml.safe_dump([{"name": "default", "memory_operand_links": LINKS}]), "utf-8")
        runs.append(Run(RUNS[place], own / "run", hardware, copied, mapping))
    return runs[0], runs[1]


def _varied(rng: random.Random, hardware: dict[str, Any], clock_mhz: float | None) -> dict[str, Any]:
    """The hardware with another clock, and with random costs of a MAC and of memories, and random off-chip
    bandwidths.
    """
    changed = {**in_bits_a_cycle(hardware), "name": f"{hardware['name']}_{rng.randrange(1000)}"}
    if clock_mhz:
        changed["clock_frequency"] = f"{clock_mhz} MHz"
    if rng.random() < 0.3:
        changed = scaled(changed, Number("MAC", (("array",), ())), 0, rng.choice((0.5, 1.5, 3.0)))
    names = list(changed["memories"])
    for name in names:
        if rng.random() < 0.15:
            changed = scaled(changed, Number("memory", ((name,), ())), 0, rng.choice((0.7, 1.2, 2.0)))
    if rng.random() < 0.4:
        changed = scaled(changed, Number("bandwidth", ((names[-1],), ())), 0, rng.choice((0.25, 0.5, 2.0)))
    return changed


def in_bits_a_cycle(hardware: dict[str, Any]) -> dict[str, Any]:
    """A hardware file whose bandwidths do not depend on the clock."""
    memories = {**hardware["memories"]}
    for memory in single_core(parse_accelerator(hardware)).memories:
        ports = [
            {**port, "bandwidth_min": own.bandwidth_min_bits, "bandwidth_max": own.bandwidth_max_bits}
            for port, own in zip(memories[memory.name]["ports"], memory.ports, strict=True)
        ]
        memories[memory.name] = {**memories[memory.name], "ports": ports}
    return {**hardware, "memories": memories}


def scaled(hardware: dict[str, Any], number: Number, place: int, factor: float) -> dict[str, Any]:
    """A hardware file with a number multiplied by a factor."""
    parts = number.parts[place]
    if not parts or factor == 1:
        return hardware
    core = single_core(parse_accelerator(hardware))
    if number.kind == "clock":
        return {**hardware, "clock_frequency": f"{core.clock_frequency_mhz * factor!r} MHz"}
    if number.kind == "MAC":
        array = {**hardware["operational_array"], "unit_energy": core.operational_array.unit_energy_pj * factor}
        return {**hardware, "operational_array": array}
    memories = {**hardware["memories"]}
    for memory in core.memories:
        if memory.name not in parts:
            continue
        entry = {key: value for key, value in memories[memory.name].items() if key != "cost"}
        energies = [memory.read_energy_pj, memory.write_energy_pj]
        if number.kind == "memory":
            energies = [energy * factor for energy in energies]
        else:
            own = [port.bandwidth_max_bits for port in memory.ports]
            entry["ports"] = [_widened(port, width, factor) for port, width in zip(entry["ports"], own, strict=True)]
            wide = [port["bandwidth_max"] for port in entry["ports"]]
            for at, way in enumerate(("read", "write")):  # the price of a bit stays the same
                places = [at for at, port in enumerate(entry["ports"]) if way in port["type"]]
                if places:
                    energies[at] *= max(wide[at] for at in places) / max(own[at] for at in places)
        if "cost" in memories[memory.name]:
            entry["area"] = f"{memory.area_mm2!r} mm2"
            source = memory.cost_source
            if source is not None and source.leakage_mw and core.clock_frequency_mhz and "leakage" not in entry:
                entry["leakage"] = source.leakage_mw
        memories[memory.name] = {**entry, "r_cost": energies[0], "w_cost": energies[1]}
    return {**hardware, "memories": memories}


def _widened(port: dict[str, Any], width: int, factor: float) -> dict[str, Any]:
    """A port of another width in whole bits, or the whole word; its least width stays."""
    wide = max(1, math.floor(width * factor * (1 + 1e-9)))
    least = port["bandwidth_min"]
    return {
        **port,
        "bandwidth_max": wide,
        "bandwidth_min": wide if least == port["bandwidth_max"] else min(least, wide),
    }


def numbers_of(runs: tuple[Run, Run]) -> list[Number]:
    """Uncertain numbers of both files without bandwidths; equal parts of both files are one number."""
    cores = [run.core for run in runs]
    arrays = [core.operational_array for core in cores]
    prices = [None if array.is_in_memory else array.unit_energy_pj for array in arrays]
    found = [Number("clock", (("clock",), ())), Number("clock", ((), ("clock",)))]
    bits = {json.dumps(layer["operand_precision"]) for layer in yaml.safe_load(runs[0].network.read_text("utf-8"))}
    assert len(bits) == 1, "prices of a MAC are compared only for equal operands"
    if prices[0] and prices[0] == prices[1]:
        found.append(Number("MAC", (("array",), ("array",))))
    else:
        found += [Number("MAC", parts) for parts, price in zip(_each("array"), prices, strict=True) if price]
    groups: list[tuple[Any, list[list[str]], tuple[float, float]]] = []
    for place, core in enumerate(cores):
        for memory in core.memories:
            source = memory.cost_source
            key = _key_of(core, memory)
            limits = (1 / LARGEST, LARGEST) if source is None else source.relative_range
            same = next((group for group in groups if group[0] == key and group[2] == limits), None)
            if same is None:
                same = (key, [[], []], limits)
                groups.append(same)
            same[1][place].append(memory.name)
    return found + [
        Number("memory", (tuple(a), tuple(b)), *limits, has_range=isinstance(key, str))
        for key, (a, b), limits in groups
    ]


def _each(part: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    return ((part,), ()), ((), (part,))


def _key_of(core: Core, memory: Any) -> Any:
    """Key that is equal for memories of equal costs.

    It is the law of costs from the library, the energies of one bit off-chip, or all properties of an on-chip memory.
    """
    if memory.cost_source is not None:
        return memory.cost_source.law
    wide = [
        max((port.bandwidth_max_bits for port in memory.ports if way in port.port_type), default=1)
        for way in ("read", "write")
    ]
    energies = memory.read_energy_pj, memory.write_energy_pj
    if memory is core.memories[-1]:
        return tuple(float(f"{energy / width:.9g}") for energy, width in zip(energies, wide, strict=True))
    return (memory.name, memory.size_bits, *energies, *wide, len(memory.ports))


@dataclass
class _Pair:
    """Two runs, the statements of `compare` on them, and the results of trials."""

    seed: int
    rng: random.Random
    runs: tuple[Run, Run]
    tally: Tally

    def check(self) -> None:
        """Compare the printed statements on the order with trials."""
        self.by_time = all(run.core.clock_frequency_mhz for run in self.runs)
        self.numbers = numbers_of(self.runs)
        own = [json.loads((run.folder / "summary.json").read_text("utf-8")) for run in self.runs]
        self.now = [(one["energy_pj"], one["latency_cycles"]) for one in (each["payload"] for each in own)]
        held = [run.evaluated(run.hardware) for run in self.runs]
        for now, again, run in zip(self.now, held, self.runs, strict=True):
            if again is None or any(abs(a - b) > EQUAL * b for a, b in zip(again, now, strict=True)):
                self._wrong(f"{run.name}: its exported mappings give {again}, not {now}")
        options = self.rng.choice(((), ("--sizes",), ("--batches", ",".join(map(str, BATCHES)))))
        told = json.loads(said("compare", *(run.folder for run in self.runs), "--json", *options))
        self.tally.counts["pairs of runs"] += 1
        self.tally.counts["pairs of runs in time"] += self.by_time
        if any(turn["change"] or turn["bandwidth_change"] for turn in told["turns"]):
            self.tally.counts["pairs with a change that turns an order"] += 1
        for turn in told["turns"]:
            self.where, self.first = turn["measure"], RUNS.index(turn["first"])
            self.tally.counts["orders"] += 1
            self._turn(turn)
        for turn in told.get("size_turns", ()):
            self.where, self.first = turn["measure"], RUNS.index(turn["first"])
            self._size(turn)
        for turn in told.get("batch_turns", ()):
            self.where, self.first = turn["measure"], RUNS.index(turn["first"])
            self._batch(turn)

    def _wrong(self, text: str) -> None:
        self.tally.wrong.append(f"seed {self.seed}: {text}")

    def _turn(self, turn: dict[str, Any]) -> None:
        now = self._difference(Number("none", ((), ())), 1.0)
        if now is None or abs(now - turn["difference"]) > EQUAL:
            self._wrong(f"{self.where}: the difference is {now}, not {turn['difference']}")
        numbers = [one for one in self.numbers if self._counts(one)]
        change = turn["change"]
        if change is not None:
            number = self._named(change, numbers)
            if number is None:
                self._wrong(f"{self.where}: no number of the files is meant by {change['number']}")
                return
            self._compare(number, change["factor"], change["number"])
            self.tally.counts[f"changes: {number.kind}"] += 1
        else:
            self.tally.counts["orders that no single number turns"] += 1
        # No other number turns the order by a smaller change.
        most = LARGEST if change is None else max(change["factor"], 1 / change["factor"]) ** 0.995
        for number in numbers:
            for factor in (max(number.low, 1 / most), min(number.high, most), *self._between(number, most)):
                found = self._difference(number, factor)
                self.tally.counts["trials that must not turn an order"] += 1
                if found is not None and found < -EQUAL:
                    self._wrong(f"{self.where}: {number} turns it at {factor}, {change} is told")
        self._bandwidths(turn)
        end = turn["nearest_end"]
        if end is not None:
            number = self._named(end, numbers)
            found = None if number is None else self._difference(number, end["factor"])
            self.tally.counts["ends of known ranges"] += 1
            if found is None or found < 0 or abs(found - turn["difference_at_nearest_end"]) > EQUAL:
                self._wrong(f"{self.where}: at {end} it is {found}, not {turn['difference_at_nearest_end']}")

    def _between(self, number: Number, most: float) -> list[float]:
        if number.kind != "clock":  # linear in all measures
            return []
        return [math.exp(self.rng.uniform(-1, 1) * math.log(most)) for _ in range(2)]

    def _counts(self, number: Number) -> bool:
        if self.where == "energy":
            return number.kind != "clock" or self.by_time
        if self.where == "latency":
            return number.kind == "clock"
        return number.kind != "clock" or self.by_time

    def _named(self, told: dict[str, Any], numbers: list[Number]) -> Number | None:
        """The number in the files that a text names."""
        match = re.fullmatch(r"(.*?)(?: relative to that of [AB])?", told["number"])
        assert match is not None
        name = match[1]
        if name.startswith("clock of "):
            kind, names, places = "clock", {"clock"}, {RUNS.index(name[-1])}
        else:
            what, where = name.rsplit(" in ", 1)
            places = {RUNS.index(one) for one in where.split(" and ")}
            kind = "MAC" if what == "energy of a MAC" else "memory"
            words = re.sub(r" \([^)]*\)$", "", what.removeprefix("energy of "))
            names = {"array"} if kind == "MAC" else set(words.split(", "))
        for number in numbers:
            used = {place for place in (0, 1) if number.parts[place]}
            own = {part for parts in number.parts for part in parts}
            is_same_kind = (number.kind, number.has_range) == (kind, told["range"] is not None)
            if is_same_kind and places <= used and names <= own:
                return number
        return None

    def _compare(self, number: Number, factor: float, name: str) -> None:
        """Check that the order is reversed just beyond a factor, and not by a part of the change."""
        beyond = factor * (1 + math.copysign(BEYOND, math.log(factor)))
        turned = self._difference(number, beyond)
        short = self._difference(number, 1 + (factor - 1) * SHORT)
        self.tally.counts["changes applied to files"] += 1
        if turned is None or turned > EQUAL:
            self._wrong(f"{self.where}: {beyond} times the {name} gives {turned}")
        if short is None or short <= 0:
            self._wrong(f"{self.where}: {SHORT} of the change to {factor} times the {name} gives {short}")

    def _bandwidths(self, turn: dict[str, Any]) -> None:
        if self.where == "energy":
            return
        cores = [run.core for run in self.runs]
        tops = [core.memories[-1] for core in cores]
        wide = [max(port.bandwidth_max_bits for port in top.ports) for top in tops]
        rates = [core.clock_frequency_mhz if self.by_time else 1.0 for core in cores]
        prices = [_bit_prices(top) for top in tops]
        is_same = math.isclose(wide[0] * rates[0], wide[1] * rates[1], rel_tol=1e-9) and all(
            math.isclose(a, b, rel_tol=1e-9) for a, b in zip(*prices, strict=True)
        )
        names = [(top.name,) for top in tops]
        both = (
            [((names[0], names[1]), max(wide))] if is_same else [((names[0], ()), wide[0]), (((), names[1]), wide[1])]
        )
        told, nearest = turn["bandwidth_change"], math.inf
        for parts, width in both:
            number = Number("bandwidth", parts)
            where = " and ".join(RUNS[place] for place in (0, 1) if parts[place])
            if told is not None and told["number"].endswith(f" in {where}"):
                nearest = abs(math.log(told["factor"]))
                found = self._difference(number, told["factor"])
                self.tally.counts["bandwidths applied to files"] += 1
                if found is None or found > 0:
                    self._wrong(f"{self.where}: {told} gives {found}")
                bits = round(told["factor"] * width)
                before = bits - 1 if told["factor"] > 1 else bits + 1
                found = self._difference(number, before / width)
                if found is not None and found < -EQUAL:
                    self._wrong(f"{self.where}: {before} bits instead of {bits} turn it, too: {found}")
        for parts, width in both:
            number = Number("bandwidth", parts)
            least, most = math.ceil(width / LARGEST), math.floor(width * LARGEST)
            for _ in range(WIDTHS):
                bits = round(math.exp(self.rng.uniform(math.log(least), math.log(most))))
                if not least <= bits <= most or abs(math.log(bits / width)) >= nearest - 1e-9:
                    continue
                found = self._difference(number, bits / width)
                self.tally.counts["bandwidths that must not turn an order"] += 1
                if found is not None and found < -EQUAL:
                    self._wrong(
                        f"{self.where}: {bits} bits of {parts} instead of {width} turn it by {found}; told: {told}"
                    )

    def _size(self, turn: dict[str, Any]) -> None:
        change = turn["turn"]
        if change is None:
            self.tally.counts["orders that no size turns"] += 1
            return
        self.tally.counts["sizes applied to files"] += 1
        place = RUNS.index(change["run"])
        for name, is_turned in (("size_bits", True), ("not_turned_size_bits", False)):
            hardware = self.runs[place].hardware
            memories = {**hardware["memories"]}
            memories[change["memory"]] = {**memories[change["memory"]], "size": change[name]}
            costs = [run.evaluated(run.hardware, is_fixed=True) for run in self.runs]
            costs[place] = self.runs[place].evaluated({**hardware, "memories": memories}, is_fixed=True)
            found = None if None in costs else self._share(costs, self._rates())
            if is_turned and (found is None or found > 0 or abs(found - change["difference"]) > EQUAL):
                self._wrong(f"{self.where}: {change} gives {found}")
            told = change["difference_not_turned"]
            if not is_turned and (found is None) != (told is None):
                self._wrong(f"{self.where}: {change} gives {found} with {name}")
            if not is_turned and found is not None and told is not None and abs(found - told) > EQUAL:
                self._wrong(f"{self.where}: {change} gives {found} with {name}")

    def _batch(self, turn: dict[str, Any]) -> None:
        layers = yaml.safe_load(self.runs[0].network.read_text("utf-8"))
        for entry in turn["differences"]:
            path = self.runs[0].network.with_name(f"net_{entry['batch']}.yaml")
            for layer in layers:
                layer["loop_sizes"][0] = entry["batch"]
            path.write_text(yaml.safe_dump(layers, sort_keys=False), "utf-8")
            costs = [run.search(path) for run in self.runs]
            found = None if None in costs else self._share(costs, self._rates())
            self.tally.counts["batches searched again"] += 1
            if found is None or abs(found - entry["difference"]) > EQUAL:
                self._wrong(f"{self.where}: batch {entry['batch']} gives {found}, not {entry['difference']}")
        self.tally.counts["batches that turn an order"] += turn["turned_at_batch"] is not None
        shares = {entry["batch"]: entry["difference"] for entry in turn["differences"]}
        turned = [batch for batch, share in shares.items() if share < -1e-9 and batch != turn["batch"]]
        if turn["turned_at_batch"] != min(turned, default=None):
            self._wrong(f"{self.where}: {turn['turned_at_batch']} is not the nearest batch of {shares}")

    def _difference(self, number: Number, factor: float) -> float | None:
        """Difference of the second to the first run's value, as a share of the first; None if files are refused."""
        costs, rates = [], self._rates()
        for place, run in enumerate(self.runs):
            is_ratio = number.kind == "clock" and not self.by_time  # no clock is in the files
            costs.append(run.evaluated(run.hardware if is_ratio else scaled(run.hardware, number, place, factor)))
            rates[place] *= factor if number.kind == "clock" and number.parts[place] else 1.0
        return None if None in costs else self._share(costs, rates)

    def _rates(self) -> list[float]:
        """The clocks of both runs, or 1 if a clock is not known."""
        return [run.core.clock_frequency_mhz if self.by_time else 1.0 for run in self.runs]

    def _share(self, costs: Any, rates: list[float]) -> float:
        powers = MEASURES[self.where]
        values = [
            energy ** powers[0] * (cycles / rate) ** powers[1]
            for (energy, cycles), rate in zip(costs, rates, strict=True)
        ]
        return values[1 - self.first] / values[self.first] - 1


def _bit_prices(memory: Any) -> tuple[float, float]:
    """Energies of reading and writing a bit, in pJ."""
    wide = [
        max((port.bandwidth_max_bits for port in memory.ports if way in port.port_type), default=1)
        for way in ("read", "write")
    ]
    return memory.read_energy_pj / wide[0], memory.write_energy_pj / wide[1]
