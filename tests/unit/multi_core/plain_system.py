"""A plain reader for accelerators of several cores: links, paths, memories, energies. It is plain and slow, reads a
list of links with an `offchip_core`, and uses no code of the package."""

import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

PICOJOULE = {"pJ": 1.0, "fJ": 1e-3, "nJ": 1e3}
BITS = {"B": 8, "KiB": 8 * 1024, "MiB": 8 * 1024**2, "GiB": 8 * 1024**3}


@dataclass
class PlainLink:
    """A link: its pairs of cores, width and energy."""

    pairs: set[tuple[int, int]]
    """Pairs (sender, receiver)."""
    width: float
    pj_per_bit: float
    is_bus: bool
    is_multicast: bool = False


@dataclass
class PlainMemory:
    """A top memory; cores that share it have one such object."""

    name: str
    core_ids: tuple[int, ...]
    size_bits: int
    read_bits: int
    write_bits: int
    read_pj: float
    write_pj: float


class PlainSystem:
    """All properties of an accelerator on which a schedule depends."""

    def __init__(self, path: Path | str) -> None:
        data = yaml.safe_load(Path(path).read_text())
        folder = Path(path).parent
        self.file_of = {int(core_id): Path(name).stem for core_id, name in data["cores"].items()}
        files = {
            name: yaml.safe_load((folder / name).read_text())
            for name in {*data["cores"].values(), data["offchip_core"]}
        }
        self.core = {int(core_id): files[name] for core_id, name in data["cores"].items()}
        self.off_chip = max(self.core) + 1
        self.core[self.off_chip] = files[data["offchip_core"]]
        roles = {int(core_id): role for core_id, role in (data.get("core_roles") or {}).items()}
        self.routers = {c for c in self.core if c != self.off_chip and roles.get(c, "compute") == "compute"}
        groups = data.get("core_memory_sharing") or []
        self.sharing = [set(group) for group in groups if isinstance(group[0], int)]
        self.one_memory = [[_place(text) for text in group] for group in groups if isinstance(group[0], str)]
        default = bool(data.get("multicast"))
        self.links = []
        for entry in data.get("core_connectivity") or []:
            is_multicast = entry.get("multicast", default) if isinstance(entry, dict) else default
            self.links += [replace(link, is_multicast=is_multicast) for link in self._links(entry, data)]
        if not any(self.off_chip in pair for link in self.links for pair in link.pairs):
            self.links += [replace(link, is_multicast=default) for link in self._off_chip_links(data)]
        self.memories = {(c, name): self._memory(c, name) for c in self.core for name in self.core[c]["memories"]}

    def _links(self, entry: Any, data: Any) -> list[PlainLink]:
        if isinstance(entry, str):
            ids = [int(part) for part in entry.split(",")]
            entry = {"type": "link" if len(ids) == 2 else "bus", "cores": ids}
        width = float(entry.get("bandwidth", data.get("bandwidth", math.inf)))
        energy = entry if {"energy_per_bit", "unit_energy_cost"} & set(entry) else data
        per_bit = _pj_per_bit(energy, width)
        ids = entry["cores"]
        if entry["type"] == "bus":
            return [PlainLink(set(itertools.permutations(ids, 2)), width, per_bit, True)]
        forth, back = (ids[0], ids[1]), (ids[1], ids[0])
        if entry.get("directed"):
            return [PlainLink({forth}, width, per_bit, False)]
        if entry.get("duplex") == "half":
            return [PlainLink({forth, back}, width, per_bit, False)]
        return [PlainLink({forth}, width, per_bit, False), PlainLink({back}, width, per_bit, False)]

    def _off_chip_links(self, data: Any) -> list[PlainLink]:
        """Return one link to all cores for each port of the off-chip memory."""
        (memory,) = self.core[self.off_chip]["memories"].values()
        others = [c for c in self.core if c != self.off_chip]
        found = []
        for port in memory["ports"]:
            pairs = set()
            if port["type"] in ("read", "read_write"):
                pairs |= {(self.off_chip, c) for c in others}
            if port["type"] in ("write", "read_write"):
                pairs |= {(c, self.off_chip) for c in others}
            width = float(port["bandwidth_max"])
            found.append(PlainLink(pairs, width, _pj_per_bit(data, width), False))
        return found

    def sharers(self, core_id: int) -> set[int]:
        """Return the cores that share the memories of a core."""
        return next((group for group in self.sharing if core_id in group), {core_id})

    def path(self, sender: int, receiver: int) -> tuple[int, ...] | None:
        """Return the numbers of the links on the path, or None.

        The widest path wins, then the shortest, then the one over the cores with the smallest ids.
        """
        if receiver in self.sharers(sender):
            return ()
        best: Any = None
        waiting = [((first,), ()) for first in self.sharers(sender)]
        while waiting:  # every simple path
            cores, links = waiting.pop()
            if cores[-1] in self.sharers(receiver):
                rank = (-min(self.links[k].width for k in links), len(links), cores)
                best = min(best, (rank, links)) if best else (rank, links)
                continue
            if len(cores) > 1 and cores[-1] not in self.routers:
                continue
            for core_id in self.core:
                hops = [k for k, link in enumerate(self.links) if (cores[-1], core_id) in link.pairs]
                if hops and core_id not in cores:
                    waiting.append(((*cores, core_id), (*links, max(hops, key=lambda k: (self.links[k].width, -k)))))
        return best[1] if best else None

    def _memory(self, core_id: int, name: str) -> PlainMemory:
        described = self.core[core_id]["memories"][name]
        places = [(c, name) for c in sorted(self.sharers(core_id)) if name in self.core[c]["memories"]]
        places = next((sorted(group) for group in self.one_memory if (core_id, name) in group), places)
        users = tuple(user for user, _ in places)
        reads, writes = [], []
        for user, own_name in places:
            for port in self.core[user]["memories"][own_name]["ports"]:
                ways = {tuple(part.strip() for part in pair.split(",")) for pair in port["allocation"]}
                is_off_chip = core_id == self.off_chip
                if ("O", "th") in ways or (is_off_chip and "read" in port["type"]):
                    reads.append(int(port["bandwidth_max"]))
                if {("I1", "fh"), ("I2", "fh")} & ways or (is_off_chip and "write" in port["type"]):
                    writes.append(int(port["bandwidth_max"]))
        widest = max(int(port["bandwidth_max"]) for port in described["ports"])
        number, _, unit = str(described["size"]).partition(" ")
        return PlainMemory(
            name,
            users,
            int(float(number) * BITS.get(unit, 1)),
            min(reads, default=widest),
            min(writes, default=widest),
            float(described["r_cost"]),
            float(described["w_cost"]),
        )


def _place(text: str) -> tuple[int, str]:
    core_id, _, name = text.partition(".")
    return int(core_id), name


def _pj_per_bit(described: Any, width: float) -> float:
    given = described.get("energy_per_bit")
    if given is None:
        return float(described.get("unit_energy_cost", 0)) / width
    number, _, unit = str(given).partition(" ")
    return float(number) * PICOJOULE[unit or "pJ"]
