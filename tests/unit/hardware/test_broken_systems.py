"""Wrong accelerator files: all problems are reported at once, each with its place and the allowed values."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError, Problem
from tilewright.cli.main import main
from tilewright.cli.validate import validate_file
from tilewright.pipeline.sources import parse_accelerator

from tests.unit.hardware.system_cases import connected, core, memory, mesh, offchip, write

Data = dict[str, Any]
LINK = {"type": "link", "cores": [0, 1]}


def entry(**changes: Any) -> Data:
    """Data of an accelerator with one link entry."""
    return connected(3, ["0, 2", "1, 2", LINK | changes])


def without(data: Data, key: str) -> Data:
    """Return the data without a key."""
    return {name: value for name, value in data.items() if name != key}


def one_memory(*memories: str) -> Data:
    """Data of two linked cores with memories that are declared as one."""
    return connected(2, ["0, 1"], core_memory_sharing=[list(memories)])


def with_graph(**changes: Any) -> Data:
    """A 2 x 2 mesh with changes to its graph."""
    data = mesh(2, 2)
    data["graph"] = {key: value for key, value in (data["graph"] | changes).items() if value != "absent"}
    return data


# name: (accelerator, path of the problem, parts of its message)
CASES: dict[str, tuple[Data, str, list[str]]] = {
    "misspelt key": (
        connected(1, []) | {"core_conectivity": []},
        "core_conectivity",
        ["unknown key", "'core_connectivity'"],
    ),
    "no name": (without(connected(1, []), "name"), "name", ["required key is missing"]),
    "no cores": (connected(0, []), "cores", ["too few items"]),
    "cores of no kind": (connected(1, []) | {"cores": "small.yaml"}, "cores", ["must be a table"]),
    "core id is text": (connected(1, []) | {"cores": {"a": "small.yaml"}}, "cores.a", ["whole number"]),
    "negative core id": (connected(1, []) | {"cores": {-1: "small.yaml"}}, "cores.-1", ["not be less than 0"]),
    "missing core file": (
        connected(1, []) | {"cores": {0: "smal.yaml"}},
        "cores.0",
        ["no such core file", "'small.yaml'"],
    ),
    "missing off-chip file": (connected(1, []) | {"offchip_core": "x/y.yaml"}, "offchip_core", ["no such core file"]),
    "core file is an accelerator": (
        connected(1, []) | {"cores": {0: "accelerator.yaml"}},
        "cores.0",
        ["the file of one core", "'accelerator.yaml'"],
    ),
    "two off-chip cores": (connected(2, ["0, 1"], offchip_core_id=1), "offchip_core_id", ["only one of the two keys"]),
    "only an off-chip core": (
        without(connected(1, []), "offchip_core") | {"cores": {0: "dram.yaml"}, "offchip_core_id": 0},
        "cores",
        ["no core besides the off-chip core"],
    ),
    "unknown off-chip id": (
        without(connected(1, []), "offchip_core") | {"offchip_core_id": 7},
        "offchip_core_id",
        ["no core has this id", "got 7"],
    ),
    "unknown core in text": (
        connected(2, ["0, 1", "1, 5"]),
        "core_connectivity[1]",
        ["no core has this id", "got 5", "0, 1, 2"],
    ),
    "unknown core in a table": (entry(cores=[0, 9]), "core_connectivity[2].cores", ["no core has this id", "got 9"]),
    "link to itself": (connected(2, ["0, 1", "1, 1"]), "core_connectivity[1]", ["linked with itself", "got 1"]),
    "core listed twice": (connected(3, ["0, 1, 2, 1"]), "core_connectivity[0]", ["listed twice", "got 1"]),
    "one core": (connected(2, ["0, 1", "1"]), "core_connectivity[1]", ["too few cores", "at least 2"]),
    "no ids": (connected(2, ["0 - 1"]), "core_connectivity[0]", ["must be core ids", "'0, 1'"]),
    "no list": (connected(2, []) | {"core_connectivity": "0, 1"}, "core_connectivity", ["must be a list"]),
    "zero bandwidth": (connected(2, ["0, 1"], bandwidth=0), "bandwidth", ["greater than 0"]),
    "zero bandwidth of a link": (entry(bandwidth=0), "core_connectivity[2].bandwidth", ["greater than 0"]),
    "bandwidth per second": (
        entry(bandwidth="8 GB/s"),
        "core_connectivity[2].bandwidth",
        ["need the frequency of the clock"],
    ),
    "no bandwidth": (without(connected(2, ["0, 1"]), "bandwidth"), "core_connectivity[0]", ["has no bandwidth"]),
    "negative energy": (connected(2, ["0, 1"], unit_energy_cost=-1), "unit_energy_cost", ["not be negative"]),
    "two energies": (entry(unit_energy_cost=1, energy_per_bit=1), "core_connectivity[2].energy_per_bit", ["only one"]),
    "two energies of the file": (connected(2, ["0, 1"], energy_per_bit=1), "energy_per_bit", ["only one"]),
    "infinite bandwidth that costs by the cycle": (
        entry(bandwidth="inf", unit_energy_cost=1),
        "core_connectivity[2]",
        ["would have no effect", "energy_per_bit"],
    ),
    "misspelt key of a link": (entry(bandwith=1), "core_connectivity[2].bandwith", ["unknown key", "'bandwidth'"]),
    "unknown type": (entry(type="lnk"), "core_connectivity[2].type", ["not one of the known values", "'link'"]),
    "link of three": (entry(cores=[0, 1, 2]), "core_connectivity[2].cores", ["a bus joins more"]),
    "directed and duplex": (entry(directed=True, duplex="half"), "core_connectivity[2].duplex", ["one direction"]),
    "multicast that is no truth": (entry(multicast="some"), "core_connectivity[2].multicast", ["true or false"]),
    "directed multicast to a core at the end": (
        connected(3, ["0, 1", "0, 2", LINK | {"cores": [2, 1], "directed": True, "multicast": True}], routers=[0, 2]),
        "core_connectivity[2].multicast",
        ["but the link ends at core 1, which passes no data on", "1 among the routers"],
    ),
    "directed multicast to the off-chip memory": (
        connected(2, ["0, 1", "1, 2", LINK | {"cores": [0, 2], "directed": True, "multicast": True}]),
        "core_connectivity[2].multicast",
        ["but the link ends at core 2, which passes no data on", "no multicast"],
    ),
    "port at an unknown core": (
        mesh(2, 2) | {"offchip_ports": [{"cores": [0]}, {"cores": [7, 1]}]},
        "offchip_ports[1].cores[0]",
        ["no core has this id", "0, 1, 2, 3, 4"],
    ),
    "no ports": (mesh(2, 2) | {"offchip_ports": []}, "offchip_ports", ["too few items", "at least 1"]),
    "port without width": (
        mesh(2, 2) | {"offchip_ports": [{"cores": [0], "bandwidth": 0}]},
        "offchip_ports[0].bandwidth",
        ["must be greater than 0"],
    ),
    "port at a core that passes no data on": (
        connected(3, ["0, 1", "1, 2"], offchip_ports=[{"cores": [2]}], routers=[0]),
        "core_connectivity",
        ["no data can get from core", "links in both directions, directly or through routers"],
    ),
    "port without a link": (
        mesh(2, 2) | {"offchip_ports": [{"cores": []}]},
        "offchip_ports[0].cores",
        ["too few items"],
    ),
    "port without cores": (
        mesh(2, 2) | {"offchip_ports": [{"bandwidth": 8}]},
        "offchip_ports[0].cores",
        ["required key is missing"],
    ),
    "port at the memory itself": (
        mesh(2, 2) | {"offchip_ports": [{"cores": [0, 4]}]},
        "offchip_ports[0].cores[1]",
        ["is the off-chip core itself"],
    ),
    "port twice at a core": (
        mesh(2, 2) | {"offchip_ports": [{"cores": [3, 1, 3]}]},
        "offchip_ports[0].cores[2]",
        ["is listed twice"],
    ),
    "ports of no memory": (
        without(connected(2, ["0, 1"], offchip_ports=[{"cores": [0]}]), "offchip_core"),
        "offchip_ports",
        ["needs an off-chip core"],
    ),
    "ports and links of the memory": (
        connected(2, ["0, 1", "0, 2"], offchip_ports=[{"cores": [1]}]),
        "offchip_ports",
        ["core_connectivity also names the off-chip core"],
    ),
    "ring of another size": (
        with_graph(type="2d_torus", nb_cols=3),
        "graph.nb_rows",
        ["2 rows of 3 cores cannot hold exactly the 4 cores"],
    ),
    "duplex bus": (entry(type="bus", duplex="half"), "core_connectivity[2].duplex", ["leave the key out"]),
    "linked twice": (connected(2, ["0, 1", "1, 0"]), "core_connectivity[1]", ["has a link to core", "entry 0"]),
    "sharing with an unknown core": (
        connected(2, ["0, 1"], core_memory_sharing=["0, 8"]),
        "core_memory_sharing[0]",
        ["got 8"],
    ),
    "sharing with itself": (
        connected(2, ["0, 1"], core_memory_sharing=["1"]),
        "core_memory_sharing[0]",
        ["too few cores"],
    ),
    "sharing in two groups": (
        connected(3, [], core_memory_sharing=["0, 1", "1, 2"]),
        "core_memory_sharing[1]",
        ["also in another group", "got 1"],
    ),
    "sharing with the off-chip core": (
        connected(2, ["0, 1"], core_memory_sharing=["0, 2"]),
        "core_memory_sharing[0]",
        ["off-chip core cannot share"],
    ),
    "sharing and linked": (
        connected(2, ["0, 1"], core_memory_sharing=["0, 1"]),
        "core_connectivity[0]",
        ["share memory"],
    ),
    "sharing of unequal memories": (
        connected(2, [], core_memory_sharing=["0, 1"]) | {"cores": {0: "small.yaml", 1: "large.yaml"}},
        "core_memory_sharing[0]",
        ["sram of core 1 differs from that of core 0: size"],
    ),
    "sharing without a common memory": (
        connected(2, [], core_memory_sharing=["0, 1"]) | {"cores": {0: "small.yaml", 1: "other.yaml"}},
        "core_memory_sharing[0]",
        ["no top memory has the same name in all of them", "core 0: sram; core 1: l1"],
    ),
    "one memory of an unknown core": (one_memory("0.sram", "8.sram"), "core_memory_sharing[0]", ["got 8"]),
    "one memory alone": (one_memory("0.sram"), "core_memory_sharing[0]", ["too few memories", "at least 2"]),
    "one memory that a core lacks": (
        one_memory("0.sram", "1.srm"),
        "core_memory_sharing[0]",
        ["core 1 has no such memory at its top", "'sram'"],
    ),
    "one memory with the off-chip core": (
        one_memory("0.sram", "2.dram"),
        "core_memory_sharing[0]",
        ["off-chip core cannot share", "2.dram"],
    ),
    "one memory of unlike ones": (
        one_memory("0.sram", "1.sram") | {"cores": {0: "small.yaml", 1: "large.yaml"}},
        "core_memory_sharing[0]",
        ["1.sram differs from 0.sram: size"],
    ),
    "two memories of a core": (
        one_memory("0.sram", "0.sram"),
        "core_memory_sharing[0]",
        ["the group lists another memory of this core too", "0.sram"],
    ),
    "one memory in two groups": (
        connected(3, ["0, 1, 2"], core_memory_sharing=[["0.sram", "1.sram"], ["1.sram", "2.sram"]]),
        "core_memory_sharing[1]",
        ["core_memory_sharing[0] already shares this memory", "1.sram"],
    ),
    "one memory of a group of cores": (
        connected(3, [], core_memory_sharing=[["1.sram", "2.sram"], "0, 1"]),
        "core_memory_sharing[0]",
        ["core_memory_sharing[1] already shares this memory", "1.sram"],
    ),
    "cores and memories in one group": (
        connected(2, ["0, 1"], core_memory_sharing=[[0, "1.sram"]]),
        "core_memory_sharing[0]",
        ["core ids, or memories of cores", "[0.out, 1.in]"],
    ),
    "role of an unknown core": (connected(1, [], core_roles={4: "simd"}), "core_roles.4", ["no core has this id"]),
    "unknown role": (connected(1, [], core_roles={0: "vector"}), "core_roles.0", ["not one of the known values"]),
    "role of the off-chip core": (connected(1, [], core_roles={1: "memory"}), "core_roles.1", ["is the off-chip core"]),
    "unknown operator": (
        connected(1, [], core_operator_types={0: ["Convv"]}),
        "core_operator_types.0[0]",
        ["neither an operator type", "'Conv'"],
    ),
    "unknown router": (connected(1, [], routers=[0, 3]), "routers[1]", ["no core has this id"]),
    "off-chip router": (connected(1, [], routers=[0, 1]), "routers[1]", ["cannot pass through"]),
    "two cores in one place": (
        connected(2, ["0, 1"], core_coordinates={0: [0, 0], 1: [0, 0]}),
        "core_coordinates.1",
        ["core 0 has these coordinates already"],
    ),
    "core without links": (
        connected(3, ["0, 3", "1, 3", "0, 1"]),
        "core_connectivity",
        ["no data can get from core", "0 to 2"],
    ),
    "cores without memory": (
        without(connected(3, ["0, 1"]), "offchip_core"),
        "core_connectivity",
        ["0 to 2; 1 to 2; 2 to 0, 1"],
    ),
    "no router on the way": (connected(3, ["0, 1", "1, 2", "1, 3"], routers=[]), "core_connectivity", ["0 to 2, 3"]),
    "memory that cannot be written": (
        connected(1, []) | {"offchip_core": "rom.yaml"},
        "offchip_core",
        ["no port of the off-chip memory can write"],
    ),
    "unknown graph": (with_graph(type="star"), "graph.type", ["not one of the known values"]),
    "mesh of another size": (
        with_graph(nb_rows=3),
        "graph.nb_rows",
        ["hold exactly the 4 cores", "nb_rows times nb_cols is 4"],
    ),
    "mesh without rows": (with_graph(nb_rows="absent"), "graph.nb_rows", ["required key is missing"]),
    "mesh without bandwidth": (with_graph(bandwidth="absent"), "graph.bandwidth", ["required key is missing"]),
    "graph without bandwidth to speak of": (with_graph(bandwidth=0), "graph.bandwidth", ["greater than 0"]),
    "unknown choice of equal paths": (
        mesh(2, 2) | {"equal_paths": "laod"},
        "equal_paths",
        ["core_ids", "load"],
    ),
    "unknown special core": (
        with_graph(simd_core_id=9),
        "graph.simd_core_id",
        ["no core has this id", "0, 1, 2, 3, 4"],
    ),
    "one core in two roles": (
        with_graph(simd_core_id=4),
        "graph.offchip_core_id",
        ["is simd_core_id too"],
    ),
    "list of cores without a graph": (without(mesh(1, 1), "graph"), "graph", ["required key is missing"]),
    "graph and connectivity": (
        mesh(1, 2) | {"core_connectivity": []},
        "core_connectivity",
        ["either graph or core_connectivity"],
    ),
    "item of the list is no file": (mesh(1, 1) | {"cores": [3, "dram.yaml"]}, "cores[0]", ["must be text"]),
}


def problems_of(data: Data, folder: Path, **files: Data) -> tuple[Problem, ...]:
    """Return the problems of an accelerator file whose core files are correct."""
    rom = offchip()
    rom["memories"]["dram"]["ports"] = [
        {"name": "r", "type": "read", "bandwidth_min": 8, "bandwidth_max": 8, "allocation": ["I1, tl", "O, tl"]}
    ]
    good = {"small": core(), "dram": offchip(), "large": core("large", sram=memory(2**20)), "rom": rom}
    write(folder, **{**good, "other": core("other", l1=memory()), **files, "accelerator": data})
    with pytest.raises(InputError) as caught:
        parse_accelerator(folder / "accelerator.yaml")
    return caught.value.problems


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_told_where_and_how_to_mend_it(case: str, tmp_path: Path) -> None:
    """One fault gives one problem, at its path and with a line."""
    data, path, parts = CASES[case]
    problems = problems_of(copy.deepcopy(data), tmp_path)
    matching = [problem for problem in problems if problem.path == path]
    assert len(matching) == 1, [str(problem) for problem in problems]
    for part in parts:
        assert part in str(matching[0])
    assert matching[0].file == str(tmp_path / "accelerator.yaml")
    assert matching[0].line or not path or "missing" in matching[0].message
    follow = {"two off-chip cores": 1, "cores of no kind": 1, "core id is text": 1, "list of cores without a graph": 1}
    assert len(problems) <= 1 + follow.get(case, 0), [str(problem) for problem in problems]


def test_all_problems_come_at_once_with_those_of_core_files(tmp_path: Path) -> None:
    """All problems come at once: first those of the accelerator in the order of lines, then those of each core file."""
    bad = core("bad")
    bad["memories"]["sram"]["size"] = 0
    data = connected(3, ["0, 7", {"type": "bus", "cores": [0, 1], "bandwidth": -1}], core_roles={0: "simdd"})
    data["cores"] = {0: "bad.yaml", 1: "bad.yaml", 2: "gone.yaml"}
    problems = problems_of(data, tmp_path, bad=bad)
    assert [problem.path for problem in problems] == [
        "cores.2",
        "core_connectivity[0]",
        "core_connectivity[1].bandwidth",
        "core_roles.0",
        "memories.sram.size",
    ]
    assert problems[-1].file == str(tmp_path / "bad.yaml")
    lines = [problem.line for problem in problems[:-1]]
    assert lines == sorted(lines)
    assert all(lines)


def test_repeated_core_ids_are_a_problem(tmp_path: Path) -> None:
    """A core id that stands twice is a problem at its second line."""
    write(tmp_path, small=core(), dram=offchip())
    file = tmp_path / "twice.yaml"
    file.write_text("name: x\nbandwidth: 1\noffchip_core: dram.yaml\ncores:\n  0: small.yaml\n  0: small.yaml\n")
    _, problems, _ = validate_file(file)
    assert [(problem.line, problem.path) for problem in problems] == [(6, "cores.0")]


def test_the_command_line_ends_with_2_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`parse hardware` and `validate` both report the problem and end with status 2, without a traceback."""
    problems_of(CASES["unknown core in text"][0], tmp_path)
    for verb in (["parse", "hardware"], ["validate"]):
        assert main([*verb, str(tmp_path / "accelerator.yaml")]) == 2
        error = capsys.readouterr().err
        assert "core_connectivity[1]: no core has this id, got 5 (allowed: 0, 1, 2)" in error
        assert "Traceback" not in error


BROKEN: list[Callable[[], Any]] = [
    lambda: 1,
    lambda: "x",
    lambda: [1],
    lambda: {"a": 1},
    lambda: None,
    lambda: -1,
    lambda: 1.5,
    lambda: True,
]


@pytest.mark.parametrize("dialect", ["connectivity", "graph"])
def test_no_value_of_any_key_crashes_the_reader(dialect: str, tmp_path: Path) -> None:
    """Values of every type at every key are read or refused, without a crash."""
    full = connected(3, ["0, 1", "0, 1, 2", LINK | {"cores": [1, 2]}], core_memory_sharing=[])
    full |= {
        "core_roles": {0: "simd"},
        "routers": [0],
        "core_coordinates": {0: [0, 0]},
        "core_operator_types": {0: ["Conv"]},
        "multicast": True,
        "equal_paths": "load",
        "offchip_ports": [{"cores": [0], "bandwidth": 8}],
    }
    ports = {"offchip_ports": [{"cores": [1]}], "equal_paths": "core_ids"}
    base = full if dialect == "connectivity" else mesh(1, 2, multicast=True) | {"core_memory_sharing": []} | ports
    write(tmp_path, small=core(), dram=offchip())
    places: list[tuple[Any, ...]] = [(key,) for key in base]
    places += [(key, inner) for key, value in base.items() if isinstance(value, dict) for inner in value]
    places += [("core_connectivity", index) for index in range(3)] if dialect == "connectivity" else []
    places += [("core_connectivity", 2, key) for key in LINK] if dialect == "connectivity" else []
    for place in places:
        for value in BROKEN:
            data = copy.deepcopy(base)
            inner: Any = data
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value()
            write(tmp_path, accelerator=data)
            # Anything but an InputError would be a fault of the reader.
            validate_file(tmp_path / "accelerator.yaml")


def test_an_off_chip_memory_that_results_cannot_stream_to(tmp_path: Path) -> None:
    """An off-chip memory that results cannot stream to gets a notice at the key `offchip_core`."""
    silent = offchip()
    port = silent["memories"]["dram"]["ports"][0]
    port["allocation"] = [pair for pair in port["allocation"] if pair != "O, fl"]
    write(tmp_path, small=core(), dram=silent, system=connected(1, []) | {"cores": {0: "./small.yaml"}})
    notices: list[str] = []
    parse_accelerator(tmp_path / "system.yaml", notices)
    told = "offchip_core: no port of dram carries 'O, fl': data that do not fit a core cannot be streamed"
    assert [notice for notice in notices if told in notice]
