"""Paths between cores: tables worked out by hand, and brute force on random small accelerators."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.hardware.core import Core, OperationalArray
from tilewright.hardware.system import CorePlace, Link, MultiCoreAccelerator, all_pairs
from tilewright.hardware.system_paths import path_table

from tests.unit.hardware.system_cases import SHARED, connected, mesh, read

Pair = tuple[int, int]


def names(accelerator: MultiCoreAccelerator) -> dict[Pair, str]:
    """Return the links of each path between different cores, by name."""
    table = path_table(accelerator).items()
    return {
        pair: " ".join(accelerator.links[index].name for index in path.links)
        for pair, path in table
        if pair[0] != pair[1]
    }


def test_mesh_of_two_by_two(tmp_path: Path) -> None:
    """Diagonals of a 2 x 2 mesh lead over the smaller core id, never over the DRAM (4).

    0 - 2
    |   |
    1 - 3
    """
    found = names(read(tmp_path, mesh(2, 2)))
    direct = {
        pair: f"{pair[0]}->{pair[1]}"
        for one, other in [(0, 1), (0, 2), (1, 3), (2, 3)]
        for pair in [(one, other), (other, one)]
    }
    diagonal = {(0, 3): "0->1 1->3", (3, 0): "3->1 1->0", (1, 2): "1->0 0->2", (2, 1): "2->0 0->1"}
    memory = {pair: "port of 4" for core in range(4) for pair in [(core, 4), (4, core)]}
    assert found == direct | diagonal | memory


def test_pooling_and_simd_cores_of_a_mesh_are_no_way_through(tmp_path: Path) -> None:
    """A path through a row of three cores avoids the SIMD core, although this core is next to both ends."""
    special = {"pooling_core_id": 3, "simd_core_id": 4, "offchip_core_id": 5}
    found = names(read(tmp_path, mesh(1, 3, special)))
    assert found[0, 2] == "0->1 1->2"
    assert (found[0, 4], found[4, 3], found[3, 4]) == ("0->4", "4->3", "3->4")


def test_bus(tmp_path: Path) -> None:
    """Every pair of cores uses the one bus, and the off-chip memory its port."""
    found = names(read(tmp_path, connected(3, ["0, 1, 2"])))
    assert found == {pair: "port of 3" if 3 in pair else "bus 0,1,2" for pair in permutations(range(4), 2)}


def test_chain_with_private_links_to_the_memory(tmp_path: Path) -> None:
    """A chain of directed links has no path back; a notice names the pairs that only off-chip memory connects."""
    chain = [{"type": "link", "cores": [core, core + 1], "directed": True} for core in range(2)]
    private = [{"type": "link", "cores": [3, core], "duplex": "half"} for core in range(3)]
    notices: list[str] = []
    accelerator = read(tmp_path, connected(3, [*chain, *private]), notices)
    expected = {(0, 1): "0->1", (1, 2): "1->2", (0, 2): "0->1 1->2"}
    expected |= {pair: f"3<->{core}" for core in range(3) for pair in [(core, 3), (3, core)]}
    assert names(accelerator) == expected
    assert [notice for notice in notices if "is over the off-chip memory" in notice and "1 to 0; 2 to 0, 1" in notice]
    with pytest.raises(InputError, match="no path from core 2 to core 0"):
        path_table(accelerator).path(2, 0)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reference inputs are not part of the repository")
def test_the_published_chain_never_passes_the_memory() -> None:
    """The path from 0 to 4 in the published accelerator aimc takes the four links of the chain."""
    from tilewright.pipeline.sources import parse_accelerator

    accelerator = parse_accelerator(SHARED / "validation" / "aimc" / "accelerator.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    assert names(accelerator)[0, 4] == "0->1 1->2 2->3 3->4"


def test_two_wide_links_go_before_a_narrow_one_and_one_link_before_two_of_its_width(tmp_path: Path) -> None:
    """Two links of 128 b/cycle in a row win against a narrower direct link; an equally wide direct link wins."""
    for width, expected in ((127, "0->1 1->2"), (128, "0->2"), (129, "0->2")):
        entries: list[Any] = [{"type": "link", "cores": [one, one + 1], "bandwidth": 128} for one in (0, 1)]
        entries.append({"type": "link", "cores": [0, 2], "bandwidth": width})
        assert names(read(tmp_path, connected(3, entries)))[0, 2] == expected


def test_only_the_narrowest_link_of_a_path_counts(tmp_path: Path) -> None:
    """The narrowest link decides between paths: both ways take the same time here, so the smaller core id wins.

    0 -16- 1 -16- 3,  0 -128- 2 -16- 3
    """
    ends = [((0, 1), 16), ((1, 3), 16), ((0, 2), 128), ((2, 3), 16)]
    entries: list[Any] = [{"type": "link", "cores": list(pair), "bandwidth": width} for pair, width in ends]
    assert names(read(tmp_path, connected(4, entries)))[0, 3] == "0->1 1->3"


def test_the_faster_of_link_and_bus_is_taken_and_the_first_of_equal_ones(tmp_path: Path) -> None:
    """The path takes the faster of a link and a bus between 0 and 1, and the first of equally fast ones."""
    for width, expected in ((16, "bus 0,1,2"), (32, "0->1"), (64, "0->1")):
        entries: list[Any] = [{"type": "link", "cores": [0, 1], "bandwidth": width}, "0, 1, 2"]
        assert names(read(tmp_path, connected(3, entries)))[0, 1] == expected


def test_any_core_of_a_shared_memory_can_send_and_receive(tmp_path: Path) -> None:
    """Data of core 0 leave through core 1, which shares its memory and has the only link to core 2."""
    data = connected(3, ["1, 2", "2, 3", "1, 3"], core_memory_sharing=["0, 1"])
    accelerator = read(tmp_path, data)
    found = names(accelerator)
    assert (found[0, 2], found[2, 0], found[0, 1], found[3, 0]) == ("1->2", "2->1", "", "3->1")
    assert path_table(accelerator).path(0, 2).core_ids == (1, 2)


def test_bandwidth_and_energy_of_a_path(tmp_path: Path) -> None:
    """The narrowest link gives the bandwidth of a path, and all its links add up to its energy."""
    entries = [
        {"type": "link", "cores": [0, 1], "bandwidth": 128, "energy_per_bit": 0.25},
        {"type": "link", "cores": [1, 2], "bandwidth": "inf", "energy_per_bit": 0.5},
    ]
    accelerator = read(tmp_path, connected(3, entries))
    path = path_table(accelerator).path(0, 2)
    assert path.bandwidth_bits_per_cycle(accelerator.links) == 128
    assert path.energy_pj_per_bit(accelerator.links) == 0.75
    assert path_table(accelerator).path(1, 2).bandwidth_bits_per_cycle(accelerator.links) is None


CORE = Core("core", OperationalArray((("D1", 1),), 0.0), ())
WIDTHS = st.sampled_from([1, 2, 3, 4, 6, 7, 64, None])


@st.composite
def accelerators(draw: st.DrawFn) -> MultiCoreAccelerator:
    """Generate up to five cores with random links and a bus; some are routers and some share memory."""
    count = draw(st.integers(2, 5))
    pairs = all_pairs(tuple(range(count)))
    links = [
        Link(f"{pair}", "link", (pair,), draw(WIDTHS), 0.0)
        for pair in draw(st.lists(st.sampled_from(pairs), max_size=9))
    ]
    if draw(st.booleans()):
        members = draw(st.lists(st.sampled_from(range(count)), min_size=2, unique=True))
        links.insert(draw(st.integers(0, len(links))), Link("bus", "bus", all_pairs(tuple(members)), draw(WIDTHS), 0.0))
    places = tuple(CorePlace(core, "core", is_router=draw(st.booleans())) for core in range(count))
    sharing = ((0, 1),) if count > 2 and draw(st.booleans()) else ()
    return MultiCoreAccelerator("random", (CORE,) * count, places, tuple(links), sharing)


def best_by_brute_force(accelerator: MultiCoreAccelerator, sender: int, receiver: int) -> tuple[int, ...] | None:
    """Return the links of the preferred path among all sequences of different cores and of links between them."""
    routers = {place.core_id for place in accelerator.places if place.is_router}
    starts, ends = accelerator.sharers_of(sender), accelerator.sharers_of(receiver)
    best = None
    for length in range(2, len(accelerator.cores) + 1):
        for cores in permutations(accelerator.core_ids, length):
            if cores[0] not in starts or cores[-1] not in ends or not routers.issuperset(cores[1:-1]):
                continue
            time, taken = Fraction(0), []
            for step in pairwise(cores):
                times = [
                    (
                        Fraction(1, link.bandwidth_bits_per_cycle) if link.bandwidth_bits_per_cycle else Fraction(0),
                        index,
                    )
                    for index, link in enumerate(accelerator.links)
                    if step in link.edges
                ]
                if not times:
                    break
                time, taken = max(time, min(times)[0]), [*taken, min(times)[1]]
            else:
                label = (time, length, cores, tuple(taken))
                best = label if best is None else min(best, label)
    return None if best is None else best[3]


@settings(max_examples=150, deadline=None)
@given(accelerators())
def test_paths_are_the_best_of_all(accelerator: MultiCoreAccelerator) -> None:
    """Each path has the least time, then the fewest links, then the smallest ids, and passes only through routers."""
    table = path_table(accelerator)
    for sender, receiver in all_pairs(accelerator.core_ids):
        if receiver in accelerator.sharers_of(sender):
            assert table.path(sender, receiver).links == ()
            continue
        expected = best_by_brute_force(accelerator, sender, receiver)
        assert table.has_path(sender, receiver) == (expected is not None)
        if expected is not None:
            assert table.path(sender, receiver).links == expected


def test_a_large_mesh_takes_the_shortest_ways() -> None:
    """A path in a mesh of 8 x 8 cores has as many links as rows and columns lie between its ends."""
    at = {core: divmod(core, 8) for core in range(64)}
    near = [
        pair
        for pair in all_pairs(tuple(at))
        if sum(abs(a - b) for a, b in zip(at[pair[0]], at[pair[1]], strict=True)) == 1
    ]
    links = tuple(Link(f"{pair}", "link", (pair,), 64, 0.0) for pair in near)
    places = tuple(CorePlace(core, "core") for core in at)
    for (one, other), path in path_table(MultiCoreAccelerator("mesh", (CORE,) * 64, places, links)).items():
        assert len(path.links) == sum(abs(a - b) for a, b in zip(at[one], at[other], strict=True))


def test_multicast_of_a_file_is_the_default_of_its_links(tmp_path: Path) -> None:
    """`multicast` of the file holds for ports and for links without their own value."""
    bus = {"type": "bus", "cores": [0, 1, 2], "multicast": True}
    found = read(
        tmp_path, connected(3, ["0, 1", {"type": "link", "cores": [1, 2], "multicast": False}], multicast=True)
    )
    assert {link.name: link.is_multicast for link in found.links} == {
        "0->1": True, "1->0": True, "1->2": False, "2->1": False, "port of 3": True
    }  # fmt: skip
    found = read(tmp_path, connected(3, ["0, 1", bus]))
    assert [link.name for link in found.links if link.is_multicast] == ["bus 0,1,2"]
    assert not any(link.is_multicast for link in read(tmp_path, mesh(2, 2)).links)
    assert all(link.is_multicast for link in read(tmp_path, mesh(2, 2, multicast=True)).links)


def test_a_directed_ring_can_have_multicast(tmp_path: Path) -> None:
    """A directed ring can have multicast, because every core of it passes data on."""
    ring = [{"type": "link", "cores": [k, (k + 1) % 3], "directed": True, "multicast": True} for k in range(3)]
    assert sum(link.is_multicast for link in read(tmp_path, connected(3, ring)).links) == 3


def test_ports_of_the_off_chip_memory_at_two_corners(tmp_path: Path) -> None:
    """Each core takes the nearest off-chip port, or the first of two equally near ones; ports can have their own width.

    0 - 2
    |   |
    1 - 3
    """
    ports = [{"cores": [0]}, {"cores": [3], "bandwidth": 48}]
    accelerator = read(tmp_path, mesh(2, 2) | {"offchip_ports": ports})
    widths = {link.name: link.bandwidth_bits_per_cycle for link in accelerator.links if link.kind == "port"}
    assert widths == {"port 0 of 4": 64, "port 1 of 4": 48}
    found = names(accelerator)
    assert (found[4, 0], found[0, 4]) == ("port 0 of 4", "port 0 of 4")
    assert found[4, 1] == "port 0 of 4 0->1"
    assert found[4, 3] == "port 0 of 4 0->1 1->3"  # wider than the port at core 3
    ports[1] = {"cores": [3]}
    found = names(read(tmp_path, mesh(2, 2) | {"offchip_ports": ports}))
    assert (found[4, 3], found[3, 4], found[2, 4]) == ("port 1 of 4", "port 1 of 4", "2->0 port 0 of 4")


def test_ports_of_a_list_of_links(tmp_path: Path) -> None:
    """An off-chip port in a file of links has its own width and is linked to copies of its cores."""
    data = connected(2, ["0, 1"], offchip_ports=[{"cores": [0, 1], "bandwidth": "2 B/cycle"}], core_counts={1: 2})
    links = [link for link in read(tmp_path, data).links if link.kind == "port"]
    assert [(link.name, link.bandwidth_bits_per_cycle, link.core_ids) for link in links] == [
        ("port 0 of 3", 16, (0, 1, 2, 3))
    ]


def shortest_links(accelerator: MultiCoreAccelerator) -> dict[Pair, tuple[float, int]]:
    """Return (bandwidth, number of links) of the path of each pair."""
    return {
        pair: (path.bandwidth_bits_per_cycle(accelerator.links) or 0, len(path.links))
        for pair, path in path_table(accelerator).items()
    }


@settings(max_examples=100, deadline=None)
@given(accelerators())
def test_paths_by_load_are_as_wide_and_as_short(accelerator: MultiCoreAccelerator) -> None:
    """Choosing among equal paths by load keeps the bandwidth and the number of links of each path."""
    by_load = replace(accelerator, equal_paths="load")
    assert shortest_links(by_load) == shortest_links(accelerator)


@pytest.mark.parametrize("shape", [{"type": "2d_mesh"}, {"type": "2d_torus"}])
def test_paths_by_load_spread_the_paths(shape: dict[str, str], tmp_path: Path) -> None:
    """Choosing by load lowers the number of paths on the fullest link of a 4 x 4 grid with the memory at a corner.
    The paths from one core still form a tree.
    """
    data = mesh(4, 4, **shape) | {"offchip_ports": [{"cores": [0]}]}
    most = {}
    for choice in ("core_ids", "load"):
        accelerator = read(tmp_path, data | {"equal_paths": choice})
        paths = {pair: path.links for pair, path in path_table(accelerator).items()}
        inner = [index for index, link in enumerate(accelerator.links) if link.kind != "port"]
        of_memory = Counter(link for pair, links in paths.items() if pair[0] == 16 for link in links if link in inner)
        of_all = Counter(link for links in paths.values() for link in links if link in inner)
        most[choice] = max(of_memory.values()), max(of_all.values())
        for sender in accelerator.core_ids:
            ends: dict[int, set[int]] = {}
            for pair, path in path_table(accelerator).items():
                if pair[0] == sender:
                    for core, link in zip(path.core_ids[1:], path.links, strict=True):
                        ends.setdefault(core, set()).add(link)
            assert all(len(links) == 1 for links in ends.values())
    assert most["load"][0] < most["core_ids"][0]
    assert most["load"][1] < most["core_ids"][1]


def test_forwarding_is_a_choice_of_the_file(tmp_path: Path) -> None:
    """Files of links and files of meshes can set `forwarding`; the default is no forwarding."""
    assert read(tmp_path, connected(2, ["0, 1"], forwarding=True)).forwards_constants
    assert read(tmp_path, mesh(2, 2) | {"forwarding": True}).forwards_constants
    assert not read(tmp_path, mesh(2, 2)).forwards_constants
