"""A slow and plain recount of a finished run from its files and descriptions, by loops over every record.

Only the parsed network comes from the package; `plain_system` reads the accelerator.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tilewright.workload.graph import Workload

from tests.unit.multi_core.plain_system import PlainMemory, PlainSystem

CAUSES = ("off_chip_fetch", "off_chip_stream", "eviction", "sink_output", "core_to_core")
Table = dict[str, float]


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)


@dataclass
class Recount:
    """The files of a run."""

    folder: Path
    system: PlainSystem
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.summary = json.loads((self.folder / "summary.json").read_text())["payload"]
        self.cns = json.loads((self.folder / "cn_graph.json").read_text())["payload"]
        self.cn_columns = dict(np.load(self.folder / "cn_graph.npz"))
        self.columns = dict(np.load(self.folder / "schedule.npz"))
        self.about = json.loads(self.columns["description"].tobytes())
        self.names = self.about["names"]
        self.ids: list[int] = self.names["core_ids"]
        self.costs = {
            path.stem: [json.loads(line) for line in path.read_text().splitlines()[1:]]
            for path in (self.folder / "cost").glob("*.jsonl")
        }
        self.is_causal = self.summary["schedule_model"] == "causal"
        self.start = self.columns["schedule.start_cycles"].tolist()
        self.end = self.columns["schedule.end_cycles"].tolist()
        self.core = [self.ids[column] for column in self.columns["schedule.allocation"].tolist()]
        self.piece_bits = self.columns["graph.piece_bits"].tolist()
        self.producer = self.columns["graph.piece_producer"].tolist()
        prefix = "schedule.transfers."
        moves = {
            name[len(prefix) :]: column.tolist() for name, column in self.columns.items() if name.startswith(prefix)
        }
        self.moves: list[dict[str, int]] = [
            dict(zip(moves, values, strict=True)) for values in zip(*moves.values(), strict=True)
        ]
        self.memory_of_number = [self._memory_named(name) for name in self.names["memory_names"]]

    def _memory_named(self, name: str) -> PlainMemory:
        ids, _, own = name.partition(": ")
        return self.system.memories[int(ids.split("+")[0]), own]

    def say(self, is_right: bool, what: str, *values: Any) -> None:
        """Record a fault unless the statement is right."""
        if not is_right:
            self.faults.append(f"{what}: {' '.join(map(str, values))}")

    def same(self, what: str, found: float, expected: float) -> None:
        """Record a fault if two numbers differ."""
        self.say(_near(found, expected), what, f"file {found}, counted {expected}")

    def row(self, cn: int) -> dict[str, Any]:
        """Return the row of a computation node (CN) in the cost table of its core."""
        row: dict[str, Any] = self.costs[self.system.file_of[self.core[cn]]][int(self.columns["graph.cost_row"][cn])]
        return row

    def needs(self, cn: int) -> Iterator[tuple[int, int]]:
        """Yield (piece, operand) of each piece that a computation node reads."""
        first, last = self.columns["graph.need_start"][cn : cn + 2].tolist()
        yield from zip(
            self.columns["graph.need_piece"][first:last].tolist(),
            self.columns["graph.need_operand"][first:last].tolist(),
            strict=True,
        )

    def streams_of(self, cn: int) -> dict[int, int]:
        """Return operand number -> bits that stream."""
        names = self.names["operand_names"]
        return {names.index(stream["operand"]): stream["bits"] for stream in self.row(cn)["streams"]}


def recount(folder: Path, hardware: Path | str, workload: Workload) -> list[str]:
    """Return each difference between the files of a run and the numbers counted from its logs."""
    run = Recount(Path(folder), PlainSystem(hardware))
    _count_work(run, workload)
    _count_core_energy(run)
    _count_moved_data(run)
    _count_use(run)
    _count_memories(run)
    _count_traffic(run, workload)
    _compare_files(run)
    return run.faults


def _tile_sizes(layer: dict[str, Any]) -> list[dict[str, int]]:
    """Return the loop sizes of each computation node of a layer; the first outer loop is the fastest."""
    loops = layer["tiling"]["loops"]
    found = []
    for number in range(math.prod(loop["count"] for loop in loops)):
        bounds = {dimension: (0, size) for dimension, size in layer["loop_sizes"]}
        values, rest = [], number
        for loop in loops:
            values.append(rest % loop["count"])
            rest //= loop["count"]
        for loop, value in reversed(list(zip(loops, values, strict=True))):
            low, high = bounds[loop["dimension"]]
            low += value * loop["tile_size"]
            bounds[loop["dimension"]] = (low, min(high, low + loop["tile_size"]))
        if all(low < high for low, high in bounds.values()):
            found.append({dimension: high - low for dimension, (low, high) in bounds.items()})
    return found


def _count_work(run: Recount, workload: Workload) -> None:
    """Check that layers are cut without loss, and that each node has a cost row with its loops and its length."""
    layers = [node.layer for node in workload.nodes if node.layer is not None]
    run.say(len(layers) == len(run.cns["layers"]), "layers", len(layers), len(run.cns["layers"]))
    for described, layer in zip(run.cns["layers"], layers, strict=True):
        tiles = _tile_sizes(described)
        run.say(len(tiles) == described["cn_count"], "CNs of", described["name"], len(tiles), described["cn_count"])
        work = sum(math.prod(tile.values()) for tile in tiles)
        run.say(work == math.prod(size for _, size in layer.loop_sizes), "work of", described["name"], work)
        for number, tile in enumerate(tiles):
            cn = described["first_cn"] + number
            what = f"{described['operator_type']} " + ", ".join(f"{d} {n}" for d, n in tile.items() if n > 1)
            row = run.row(cn)
            if run.is_causal:  # the other model lets all tiles of a layer cost the same
                run.say(row["what"].split(";")[0] == what.strip(), "row of CN", cn, row["what"], what)
            run.say(not row["reason"], "CN on a core that cannot run it", cn, row["reason"])
            cycles = row[f"{run.summary['settings']['cn_runtime']}_cycles"]
            took = run.end[cn] - run.start[cn]
            run.say(took == cycles or (took > cycles and row["streams"]), "length of CN", cn, took, cycles)


def _count_core_energy(run: Recount) -> None:
    """Count energy and times of the cores."""
    energy = run.summary["energy"]
    count = len(run.start)
    run.same("on-core energy", energy["on_core_pj"], sum(run.row(cn)["on_core_energy_pj"] for cn in range(count)))
    operational = sum(run.row(cn)["operational_energy_pj"] for cn in range(count))
    run.same("operational energy", energy["on_core_operational_pj"], operational)
    memories: Table = defaultdict(float)
    for cn in range(count):
        for name, value in run.row(cn)["memory_energy_pj"]:
            memories[name] += value
    for name in memories | energy["on_core_memory_pj"]:
        run.same(f"energy of {name}", energy["on_core_memory_pj"].get(name, 0.0), memories.get(name, 0.0))
    for row in run.summary["cores"]:
        cns = [cn for cn in range(count) if run.core[cn] == row["core"]]
        busy = sum(run.end[cn] - run.start[cn] for cn in cns)
        run.say(row["cn_count"] == len(cns) and row["busy_cycles"] == busy, "busy cycles of core", row["core"])
        run.same("use of core", row["utilisation"], busy / run.summary["latency_cycles"])
        ideal = sum(run.row(cn)["ideal_cycles"] for cn in cns)
        run.same("use of array", row["array_utilisation"], ideal / run.summary["latency_cycles"])
        run.same("energy of core", row["energy_pj"], sum(run.row(cn)["on_core_energy_pj"] for cn in cns))
        for one, other in zip(
            sorted(cns, key=lambda cn: run.start[cn]), sorted(cns, key=lambda cn: run.end[cn]), strict=True
        ):
            run.say(one == other, "CNs overlap on core", row["core"], one, other)


def _path(run: Recount, sender: int, receiver: int) -> tuple[int, ...]:
    links = run.system.path(sender, receiver)
    if not run.is_causal and run.system.off_chip not in (sender, receiver):  # takes the fewest links, by any core
        halves = [run.system.path(sender, run.system.off_chip), run.system.path(run.system.off_chip, receiver)]
        detour = (*halves[0], *halves[1]) if None not in halves else None
        links = min((way for way in (links, detour) if way is not None), key=len, default=None)
    run.say(links is not None, "no path", sender, receiver)
    return links or ()


def _count_moved_data(run: Recount) -> None:
    """Count the energy by cause and the bits of the links."""
    link_pj: Table = defaultdict(float)
    memory_pj: Table = defaultdict(float)
    bits_of_cause: dict[str, int] = defaultdict(int)
    count_of_cause: dict[str, int] = defaultdict(int)
    link_bits: dict[int, int] = defaultdict(int)

    def carry(cause: str, bits: int, links: Sequence[int]) -> None:
        for link in links:
            link_bits[link] += bits
            link_pj[cause] += bits * run.system.links[link].pj_per_bit

    tree: set[int] = set()  # links with multicast that carry the piece of the transfer before
    for move in run.moves:
        cause, bits = CAUSES[move["cause"]], run.piece_bits[move["piece"]]
        links = _path(run, run.ids[move["source_core"]], run.ids[move["target_core"]])
        source, target = (run.memory_of_number[move[f"{end}_memory"]] for end in ("source", "target"))
        bits_of_cause[cause] += bits
        count_of_cause[cause] += 1
        if move["broadcast_of"] >= 0:  # listens to another transfer: its links carry the data, its source reads them
            pair = divmod(move["broadcast_of"], len(run.ids))
            heard = _path(run, *(run.ids[core] for core in pair))
            is_fork = all(path and run.system.links[path[0]].is_multicast for path in (heard, links))
            shared = [run.system.links[k] for k in set(heard) & set(links)]
            run.say(is_fork or any(k.is_bus or k.is_multicast for k in shared), "listens on no bus", move)
            links = tuple(link for link in links if link not in heard and link not in tree)
        else:
            tree = set()
            memory_pj[cause] += -(-bits // source.read_bits) * source.read_pj
        carry(cause, bits, links)
        tree |= {link for link in links if run.system.links[link].is_multicast}
        width = target.write_bits if run.is_causal else source.write_bits
        memory_pj[cause] += -(-bits // width) * target.write_pj
        if run.is_causal:
            rate = move["bits_per_cycle"]
            run.say(move["end_cycles"] - move["start_cycles"] == -(-bits // rate), "length of transfer", move)
            fastest = min([source.read_bits, target.write_bits, *(run.system.links[k].width for k in links)])
            run.say(rate <= fastest, "rate of transfer", move, fastest)
    (off_chip,) = run.system.core[run.system.off_chip]["memories"]
    dram = run.system.memories[run.system.off_chip, off_chip]
    for cn in range(len(run.start)):
        streams = run.streams_of(cn)
        count_of_cause["off_chip_stream"] += bool(streams)
        for operand, bits in streams.items():
            ends = (run.core[cn], run.system.off_chip)
            carry("off_chip_stream", bits, _path(run, *(ends if operand == 0 else ends[::-1])))
            width, energy = (dram.write_bits, dram.write_pj) if operand == 0 else (dram.read_bits, dram.read_pj)
            memory_pj["off_chip_stream"] += -(-bits // width) * energy
            bits_of_cause["off_chip_stream"] += bits
    total = run.summary["energy"]["on_core_pj"]
    for cause in CAUSES:
        row = run.summary["energy"]["causes"][cause]
        run.same(f"link energy of {cause}", row["link_pj"], link_pj[cause])
        run.same(f"memory energy of {cause}", row["memory_pj"], memory_pj[cause])
        run.same(f"bits of {cause}", row["bits"], bits_of_cause[cause])
        run.same(f"transfers of {cause}", row["transfers"], count_of_cause[cause])
        total += link_pj[cause] + memory_pj[cause]
    run.same("energy", run.summary["energy_pj"], total)
    latency = run.summary["latency_cycles"]
    run.same("EDP", run.summary["edp_pj_cycles"], total * latency)
    carried = sorted(link_bits[k] for k in range(len(run.system.links)))
    run.say(sorted(row["bits"] for row in run.summary["links"]) == carried, "bits of links", carried)
    for row in run.summary["links"]:
        if row["width_bits_per_cycle"]:
            run.same("use of link", row["utilisation"], row["bits"] / row["width_bits_per_cycle"] / latency)
            limited = not run.is_causal or row["utilisation"] <= row["busy"] + 1e-9
            run.say(limited and row["busy"] <= 1 + 1e-9, "busy share of link", row)


def _count_use(run: Recount) -> None:
    """Check that latency is the last end of a node or transfer, and that gaps follow from the bounds."""
    last = max([*run.end, *(move["end_cycles"] for move in run.moves)])
    if run.is_causal:
        run.same("latency", run.summary["latency_cycles"], last)
    bound = run.summary["lower_bound"]
    if bound is not None:
        for key, gap in (("latency_cycles", "gap_latency"), ("energy_pj", "gap_energy")):
            run.say(bound[key] <= run.summary[key] * (1 + 1e-12), "bound above", key, bound[key], run.summary[key])
            run.same(gap, run.summary[gap], 1 - bound[key] / run.summary[key])
        run.same("bound", bound["latency_cycles"], max(bound["latency_terms"].values()))


def _count_memories(run: Recount) -> None:
    """Check that memories hold the data of running nodes, stay within their size, and contain all that arrives."""
    if not run.is_causal:
        return
    change = [
        run.columns[f"schedule.memory_changes.{name}"].tolist() for name in ("time_cycles", "memory", "change_bits")
    ]
    core_memory = run.columns["system.core_memory"].tolist()
    column_of = {core_id: column for column, core_id in enumerate(run.ids)}
    off_chip = core_memory[column_of[run.system.off_chip]][0]
    arrived: dict[int, int] = defaultdict(int)
    for move in run.moves:
        arrived[move["target_memory"]] += run.piece_bits[move["piece"]]
    for piece, producer in enumerate(run.producer):
        if producer >= 0:
            streams = 0 in run.streams_of(producer)
            arrived[off_chip if streams else core_memory[column_of[run.core[producer]]][0]] += run.piece_bits[piece]
        else:
            arrived[off_chip] += run.piece_bits[piece]
    for number, row in enumerate(run.summary["memories"]):
        memory = run.memory_of_number[number]
        own = [(time, bits) for time, of, bits in zip(*change, strict=True) if of == number]
        grown = sum(bits for _, bits in own if bits > 0)
        run.say(grown == arrived[number], "bits that came into", row["name"], grown, arrived[number])
        held, peak = 0, 0
        at: dict[int, int] = {}
        for time, bits in own:
            held += bits
            at[time] = held
            run.say(held >= 0, "less than nothing in", row["name"], time, held)
        peak = max(at.values(), default=0)
        run.same(f"peak of {row['name']}", row["peak_bits"], peak)
        run.same(f"capacity of {row['name']}", row["capacity_bits"], memory.size_bits)
        run.same(f"peak share of {row['name']}", row["peak_share"], peak / memory.size_bits)
        run.say(peak <= memory.size_bits, "too much in", row["name"], peak)
        times = sorted(at)
        for cn in range(len(run.start)):
            wanted = sum(
                run.piece_bits[piece] for piece in _kept(run, cn, number, core_memory[column_of[run.core[cn]]])
            )
            before = [time for time in times if time <= run.start[cn]]
            run.say(wanted <= (at[before[-1]] if before else 0), "CN without its data", cn, row["name"], wanted)


def _kept(run: Recount, cn: int, memory: int, memories: Sequence[int]) -> set[int]:
    """Return the pieces that a computation node keeps in a memory while it runs."""
    streams = run.streams_of(cn)
    found = {piece for piece, operand in run.needs(cn) if memories[operand] == memory and operand not in streams}
    if memories[0] == memory and 0 not in streams:
        found |= {piece for piece, producer in enumerate(run.producer) if producer == cn}
    return found


def _count_traffic(run: Recount, workload: Workload) -> None:
    """Check that data from outside come on chip at least once, that results leave, and that pieces fit their tensor."""
    if not run.is_causal:
        return
    read: dict[int, int] = defaultdict(int)
    for move in run.moves:
        read[move["piece"]] += CAUSES[move["cause"]] == "off_chip_fetch"
    needed: dict[int, list[bool]] = defaultdict(list)
    for cn in range(len(run.start)):
        streams = run.streams_of(cn)
        for piece, operand in run.needs(cn):
            needed[piece].append(operand in streams)
    for piece, streaming in needed.items():
        if run.producer[piece] < 0 and not all(streaming):
            run.say(read[piece] >= 1, "constant that never came", piece)
    written = {move["piece"] for move in run.moves if CAUSES[move["cause"]] in ("sink_output", "eviction")}
    for piece in np.flatnonzero(run.columns["graph.piece_is_output"]).tolist():
        run.say(0 in run.streams_of(run.producer[piece]) or piece in written, "result that never left", piece)
    volume: dict[int, int] = defaultdict(int)
    for piece, tensor in enumerate(run.columns["graph.piece_tensor"].tolist()):
        volume[tensor] += run.piece_bits[piece]
    for tensor, bits in volume.items():
        name, kind = run.names["tensor_names"][tensor], run.names["tensor_kinds"][tensor]
        if kind != "partial_sum":
            whole = workload.tensor_of[name].element_count * workload.tensor_of[name].bits
            run.say(bits <= whole, "more than the tensor", name, bits, whole)
            run.say(kind != "weight" or bits == whole, "weights that nobody reads", name, bits, whole)


def _compare_files(run: Recount) -> None:
    """Check that allocation, CN graph and schedule belong to one run."""
    found = json.loads((run.folder / "allocation.json").read_text())["payload"]
    same_settings = found["settings"] == run.summary["settings"]
    group = run.cn_columns["group"].tolist()
    core_of = {(part["layer"], part["group"]): part["core"] for part in found["allocation"]}
    layer_of = [number for number, layer in enumerate(run.cns["layers"]) for _ in range(layer["cn_count"])]
    for cn, layer in enumerate(layer_of):
        run.say(core_of[layer, group[cn]] == run.core[cn], "core of CN", cn)
    if same_settings:
        for key in ("latency_cycles", "energy_pj"):
            run.same(f"{key} of the allocation", found[key], run.summary[key])
    for point in found["front"]:
        run.same("EDP of a point", point["edp"], point["latency_cycles"] * point["energy_pj"])
    chosen = [point for point in found["front"] if point["is_chosen"]]
    run.say(len(chosen) == 1, "chosen points", len(chosen))
    key = {"latency": "latency_cycles", "energy": "energy_pj", "EDP": "edp"}[found["objective"]]
    run.say(_near(chosen[0][key], min(point[key] for point in found["front"])), "not the best of the front")
    flows: dict[tuple[int, int], int] = defaultdict(int)
    for cn in range(len(run.start)):
        for piece in {piece for piece, _ in run.needs(cn)}:
            if run.producer[piece] >= 0 and run.names["tensor_kinds"][_tensor(run, piece)] != "partial_sum":
                flows[run.producer[piece], cn] += run.piece_bits[piece]
    names = ("edge_source", "edge_target", "edge_operand", "edge_bits")
    edges: dict[tuple[int, int], int] = defaultdict(int)
    for source, target, operand, bits in zip(*(run.cn_columns[name].tolist() for name in names), strict=True):
        if operand >= 0:
            edges[source, target] = max(edges[source, target], bits)
    run.say(set(flows) == set(edges), "edges", len(flows), len(edges))
    for pair, bits in edges.items():
        run.say(flows[pair] >= bits, "pieces of an edge", pair, flows[pair], bits)


def _tensor(run: Recount, piece: int) -> int:
    return int(run.columns["graph.piece_tensor"][piece])
