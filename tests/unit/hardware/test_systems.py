"""Accelerators of several cores as they are read: links, roles, shared memories, core files, artifacts."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import ArtifactError, InputError
from tilewright.cli.main import main
from tilewright.cli.validate import validate_file
from tilewright.hardware.core import single_core
from tilewright.hardware.core_paths import core_file_names
from tilewright.hardware.source import read_accelerator_artifact
from tilewright.hardware.system import Link, MultiCoreAccelerator, energy_per_bit_pj
from tilewright.hardware.system_paths import path_table
from tilewright.pipeline.sources import parse_accelerator

from tests.unit.hardware.system_cases import (
    FOREIGN_KEY,
    MULTI,
    PUBLISHED_CHIPS,
    SHARED,
    WITH_FOREIGN_KEY,
    connected,
    core,
    memory,
    mesh,
    offchip,
    read,
    write,
)
from tools.validate_files import schema_text

REFERENCE = SHARED / "stream-reference"
OURS = sorted(MULTI.glob("*.yaml"))
PUBLISHED = PUBLISHED_CHIPS + [path for path in sorted((REFERENCE / "hw").glob("hw*.yaml")) if path.is_file()]
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the reference inputs are not part of the repository")


def links(accelerator: MultiCoreAccelerator) -> set[tuple[Any, ...]]:
    """Return (pairs, bandwidth, energy of a busy cycle) of each link."""
    return {(link.edges, link.bandwidth_bits_per_cycle, link.unit_energy_pj_per_cycle) for link in accelerator.links}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_our_own_accelerators_have_no_problem_and_no_remark(path: Path) -> None:
    """The shipped accelerators are valid and get no notice, except diana, for a memory that its cores do not share."""
    kind, problems, notices = validate_file(path)
    assert (kind, problems) == ("hardware", [])
    assert [notice for notice in notices if "shares only l1, and does not share weights (I2)" not in str(notice)] == []
    assert bool(notices) == (path.stem == "diana")


@needs_shared
@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_accelerators_of_the_reference_are_read(path: Path) -> None:
    """Files of the reference tool and of the published chips have no problem."""
    assert validate_file(path)[:2] == ("hardware", [])


@needs_shared
@pytest.mark.parametrize("path", WITH_FOREIGN_KEY, ids=lambda path: path.parent.name)
def test_a_key_of_others_is_the_only_problem(path: Path) -> None:
    """A foreign key is the only problem of a file that is otherwise valid."""
    (problem,) = validate_file(path)[1]
    assert (problem.path, problem.message, problem.nearest) == (FOREIGN_KEY, "unknown key", "core_memory_sharing")


@needs_shared
@pytest.mark.parametrize("path", sorted((REFERENCE / "hw").glob("testing*.yaml")), ids=lambda path: path.stem)
def test_core_files_named_from_a_folder_above_are_found(path: Path, tmp_path: Path) -> None:
    """Core files that are named from a folder above are found, as in the tests of the reference."""
    folder = tmp_path / "stream" / "inputs" / "testing" / "hardware"
    (folder / "cores").mkdir(parents=True)
    write(folder / "cores", testing_core1=core(), testing_core2=core(), offchip=offchip())
    (folder / path.name).write_text(path.read_text())
    assert validate_file(folder / path.name) == ("hardware", [], [])


@needs_shared
@pytest.mark.parametrize("path", sorted((REFERENCE / "cases").glob("*.json")), ids=lambda path: path.stem)
def test_links_are_those_of_the_reference(path: Path) -> None:
    """The reference tool builds the same links: pairs, bandwidth, cost of a busy cycle."""
    case = json.loads(path.read_text())
    accelerator = parse_accelerator(REFERENCE / case["hw"])
    assert isinstance(accelerator, MultiCoreAccelerator)
    expected = {
        (frozenset(link["edges"]), link["bandwidth"], float(link["unit_energy_cost"])) for link in case["links"]
    }
    found = {
        (frozenset(f"core{one}->core{other}" for one, other in edges), width, unit)
        for edges, width, unit in links(accelerator)
    }
    assert found == expected


@needs_shared
def test_energy_of_a_transfer_is_that_of_the_reference_for_whole_words() -> None:
    """A transfer of 384 bits at 32 a cycle keeps the link busy for 12 cycles, which cost 1.2 pJ at 0.1 pJ a cycle."""
    accelerator = parse_accelerator(REFERENCE / "hw" / "hw2e.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    link = accelerator.links[0]
    assert link.transfer_cycles(384) == 12
    assert 384 * link.energy_pj_per_bit == pytest.approx(1.2)


def test_energy_per_bit_is_the_cost_of_a_cycle_over_the_width() -> None:
    """Energy per bit is the cost of a busy cycle over the width; an infinite bandwidth costs no time and energy."""
    assert energy_per_bit_pj(6.4, 64) == pytest.approx(0.1)
    assert energy_per_bit_pj(6.4, None) == 0.0
    assert Link("x", "link", ((0, 1),), None, 0.5).transfer_cycles(10**9) == 0
    assert Link("x", "link", ((0, 1),), 64, 0.5).transfer_cycles(65) == 2


def test_a_mesh_fills_columns_first_and_links_neighbours(tmp_path: Path) -> None:
    """Cores fill a mesh column by column, with a link in each direction and one off-chip port."""
    accelerator = read(tmp_path, mesh(2, 3))
    neighbours = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)]
    both = {edge for one, other in neighbours for edge in ((one, other), (other, one))}
    port = tuple((c, 6) for c in range(6)) + tuple((6, c) for c in range(6))
    assert links(accelerator) == {((edge,), 64, 0.5) for edge in both} | {(port, 64, 0.5)}
    assert [place.coordinates for place in accelerator.places] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), None]
    assert [place.role for place in accelerator.places] == ["compute"] * 6 + ["offchip"]


def test_pooling_and_simd_cores_of_a_mesh_are_linked_with_all(tmp_path: Path) -> None:
    """Links of the pooling core have the bandwidth of the mesh, links of the SIMD core take no time; neither is a
    router."""
    special = {"pooling_core_id": 2, "simd_core_id": 3, "offchip_core_id": 4}
    accelerator = read(tmp_path, mesh(1, 2, special))
    found = {link.edges[0]: link.bandwidth_bits_per_cycle for link in accelerator.links if len(link.edges) == 1}
    assert {edge for edge, width in found.items() if width == 64} == {(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)}
    assert {edge for edge, width in found.items() if width is None} == {(c, 3) for c in (0, 1, 2)} | {
        (3, c) for c in (0, 1, 2)
    }
    assert [place.role for place in accelerator.places] == ["compute", "compute", "pooling", "simd", "offchip"]
    assert [place.core_id for place in accelerator.places if place.is_router] == [0, 1]


def test_a_bus_graph_is_one_link_that_the_simd_core_shares(tmp_path: Path) -> None:
    """The SIMD core of a bus graph is on the bus; the pooling core has its own links."""
    special = {"pooling_core_id": 2, "simd_core_id": 3, "offchip_core_id": 4}
    accelerator = read(tmp_path, mesh(1, 2, special, type="bus", nb_rows=None, nb_cols=None))
    bus = accelerator.links[0]
    assert (bus.kind, bus.core_ids, len(bus.edges)) == ("bus", (0, 1, 3), 6)
    own = {link.edges[0] for link in accelerator.links if link.kind == "link"}
    assert own == {(0, 2), (2, 0), (1, 2), (2, 1)}


def test_two_ids_are_two_links_and_more_are_a_bus(tmp_path: Path) -> None:
    """Two ids give two links and three ids a bus, written as text or as a list."""
    for form in (["0, 1", "0, 1, 2"], [[0, 1], [0, 1, 2]]):
        accelerator = read(tmp_path, connected(3, form))
        assert [link.name for link in accelerator.links] == ["0->1", "1->0", "bus 0,1,2", "port of 3"]


def test_links_have_their_own_bandwidth_energy_and_direction(tmp_path: Path) -> None:
    """The table of a link sets its own values and takes the other values from the file."""
    entries = [
        {"type": "link", "cores": [0, 1], "bandwidth": "16 B/cycle", "energy_per_bit": "80 fJ", "directed": True},
        {"type": "link", "cores": [1, 2], "unit_energy_cost": 6.4, "bandwidth": 64},
        {"type": "link", "cores": [2, 0], "duplex": "half"},
        {"type": "bus", "cores": [3, 0, 1, 2], "bandwidth": "inf", "directed": True, "unit_energy_cost": 0},
        {"type": "bus", "cores": [0, 1, 2, 3]},
    ]
    one, two, back, half, broadcast, bus = read(tmp_path, connected(3, entries)).links
    assert (one.edges, one.bandwidth_bits_per_cycle, one.energy_pj_per_bit) == (((0, 1),), 128, 0.08)
    assert one.unit_energy_pj_per_cycle is None
    assert (two.edges, back.edges, two.energy_pj_per_bit) == (((1, 2),), ((2, 1),), pytest.approx(0.1))
    assert (half.edges, half.bandwidth_bits_per_cycle) == (((2, 0), (0, 2)), 32)
    assert half.is_half_duplex
    assert not one.is_half_duplex
    assert (broadcast.edges, broadcast.bandwidth_bits_per_cycle) == (((3, 0), (3, 1), (3, 2)), None)
    assert (bus.kind, len(bus.edges)) == ("bus", 12)


def test_the_offchip_memory_is_linked_by_its_ports_unless_the_file_links_it(tmp_path: Path) -> None:
    """One off-chip port is one link for all cores; a read and a write port are a link each.
    An entry that names the off-chip core replaces these links.
    """
    single = read(tmp_path, connected(2, ["0, 1"])).links[2:]
    assert [(link.name, link.kind, link.bandwidth_bits_per_cycle) for link in single] == [("port of 2", "port", 64)]
    wide = offchip("read", "write")
    wide["memories"]["dram"]["ports"][0]["bandwidth_max"] = 256
    out_of, into = sorted(read(tmp_path, connected(2, ["0, 1"]), dram=wide).links[2:], key=lambda link: link.name)
    assert (out_of.name, out_of.edges, out_of.bandwidth_bits_per_cycle) == ("read port of 2", ((2, 0), (2, 1)), 256)
    assert (into.name, into.edges, into.bandwidth_bits_per_cycle) == ("write port of 2", ((0, 2), (1, 2)), 64)
    named = read(tmp_path, connected(2, ["0, 1", "0, 2"]))
    assert [link.name for link in named.links] == ["0->1", "1->0", "0->2", "2->0"]


def test_an_offchip_core_may_stand_among_the_cores_and_need_no_array(tmp_path: Path) -> None:
    """`offchip_core_id` may name one of the cores; its array may be missing and is read as one unit without energy."""
    for array in ({"sizes": [0]}, {"sizes": [1], "unit_energy": float("inf")}, None):
        dram = offchip()
        dram["operational_array"] = {"dimensions": ["D1"], "unit_energy": 0} | array if array else None
        if array is None:
            del dram["operational_array"]
        data = connected(2, ["0, 2", "0, 1"]) | {"offchip_core_id": 2}
        data["cores"][2] = data.pop("offchip_core")
        accelerator = read(tmp_path, data, dram=dram)
        assert accelerator.offchip_core_id == 2
        dummy = accelerator.core_of[2].operational_array
        assert (dummy.unit_count, dummy.unit_energy_pj) == (1, 0.0)


def test_cores_that_share_memory_use_one_instance_and_need_no_link(tmp_path: Path) -> None:
    """Two cores that share memory have one instance of it and no link on the bus."""
    accelerator = read(tmp_path, connected(3, ["0, 1, 2"], core_memory_sharing=["0, 1"]))
    shared, own, dram = accelerator.memory_instances
    assert (shared.core_ids, own.core_ids, dram.core_ids) == ((0, 1), (2,), (3,))
    assert accelerator.links[0].edges == ((0, 2), (1, 2), (2, 0), (2, 1))
    assert path_table(accelerator).path(0, 1).links == ()


def test_cores_share_only_top_memories_of_equal_name(tmp_path: Path) -> None:
    """Cores share only top memories of equal name; a notice names the private weight memory."""
    digital = core("digital", weights=memory(operands=("I2",)), l1=memory(operands=("I1", "O")))
    pooling = core("pooling", l1=memory())
    notices: list[str] = []
    data = connected(2, [], core_memory_sharing=["0, 1"])
    data["cores"][1] = "pooling.yaml"
    accelerator = read(tmp_path, data, notices, small=digital, pooling=pooling)
    named = [(instance.memory.name, instance.users) for instance in accelerator.memory_instances]
    assert named[:2] == [("weights", ((0, ("I2",)),)), ("l1", ((0, ("I1", "O")), (1, ("I1", "I2", "O"))))]
    assert any("core 0 shares only l1, and does not share weights (I2)" in notice for notice in notices)


def test_a_top_memory_that_others_cannot_fill_is_noted(tmp_path: Path) -> None:
    """A top memory without a port for incoming data gets a notice in a system."""
    closed = core()
    closed["memories"]["sram"]["ports"][1]["allocation"].remove("I2, fh")
    notices: list[str] = []
    read(tmp_path, connected(1, []), notices, small=closed)
    assert [notice for notice in notices if "cores.0: no port of sram carries 'I2, fh'" in notice]


def test_roles_operators_routers_and_coordinates_are_read(tmp_path: Path) -> None:
    """Roles, operator types, routers and coordinates of the accelerator replace the values of the core file."""
    vector = core("vector") | {"operator_types": ["vector"]}
    more = {
        "core_roles": {1: "simd", 2: "memory"},
        "core_operator_types": {2: ["MaxPool"]},
        "routers": [0, 2],
        "core_coordinates": {0: [3, 4]},
    }
    data = connected(3, ["0, 1", "0, 2"], **more)
    data["cores"][1] = "vector.yaml"
    places = read(tmp_path, data, vector=vector).places
    assert [place.role for place in places] == ["compute", "simd", "memory", "offchip"]
    assert [place.operator_types for place in places] == [None, ("vector",), ("MaxPool",), None]
    assert [place.is_router for place in places] == [True, False, True, False]
    assert places[0].coordinates == (3, 4)


def test_core_files_are_found_beside_the_file_above_it_and_in_hardware_folders(tmp_path: Path) -> None:
    """Core files are found beside the file, from a folder above, and by bare name in a folder called hardware."""
    folder = tmp_path / "stream" / "inputs" / "hardware" / "deep"
    (folder.parent / "cores").mkdir(parents=True)
    folder.mkdir()
    write(folder.parent / "cores", bare=core("bare"))
    write(folder, beside=core("beside"))
    data = connected(3, ["0, 1", "1, 2"])
    data["cores"] = {0: "./beside.yaml", 1: "stream/inputs/hardware/cores/bare.yaml", 2: "bare.yaml"}
    accelerator = read(folder, data)
    assert [found.name for found in accelerator.cores] == ["beside", "bare", "bare", "dram"]
    assert list(accelerator.distinct_cores) == ["beside", "bare"]


def test_core_files_of_one_name_are_told_apart_by_their_folder() -> None:
    """Core files of equal name are called by as many folders as necessary; a file used twice has one name."""
    paths = [Path("/a/x/core.yaml"), Path("/a/y/core.yaml"), Path("/a/y/other.yaml"), Path("/a/x/core.yaml")]
    assert core_file_names(paths) == ["x-core", "y-core", "y-other", "x-core"]
    assert core_file_names([Path("/a/core.yaml"), Path("/a/core.yml")]) == ["core.yaml", "core.yml"]
    three = [Path("/a/core.yaml"), Path("/a/core.yml"), Path("/b/core.yaml")]
    assert core_file_names(three) == ["a-core.yaml", "a-core.yml", "b-core.yaml"]
    joined = [Path("/b-x.yaml"), Path("/a/x.yaml"), Path("/b/x.yaml"), Path("/a/a/x.yaml")]
    assert core_file_names(joined) == ["b_-x", "a-x", "b-x", "a-a-x"]


@given(
    st.lists(
        st.builds(
            lambda folders, name, suffix: Path("/", *folders, name + suffix),
            st.lists(st.sampled_from(("a", "b", "a-b", "b.c")), max_size=3),
            st.sampled_from(("x", "b-x", "a-b-x", "x.y")),
            st.sampled_from((".yaml", ".yml", "")),
        ),
        max_size=5,
    )
)
def test_no_two_core_files_have_one_name(paths: list[Path]) -> None:
    """Different core files have different names, and equal files have equal names."""
    names = core_file_names(paths)
    assert len({*zip(paths, names, strict=True)}) == len({*paths}) == len({*names})


def test_cores_come_in_the_order_of_ids(tmp_path: Path) -> None:
    """Cores come in the order of their ids, whatever their order in the file."""
    data = connected(0, ["7, 2"])
    data["cores"] = {7: "small.yaml", 2: "other.yaml"}
    accelerator = read(tmp_path, data, other=core("other"))
    assert accelerator.core_ids == (2, 7, 8)
    assert [found.name for found in accelerator.cores] == ["other", "small", "dram"]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_the_artifact_reads_back_without_loss(path: Path, tmp_path: Path) -> None:
    """`parse hardware` writes artifacts of the accelerator and its cores that read back as equal."""
    output = tmp_path / "accelerator.json"
    assert main(["parse", "hardware", str(path), "-o", str(output), "--core-folder", str(tmp_path / "core")]) == 0
    accelerator = parse_accelerator(path)
    assert isinstance(accelerator, MultiCoreAccelerator)
    assert parse_accelerator(output) == accelerator
    written = sorted(file.stem for file in (tmp_path / "core").iterdir())
    assert written == sorted(accelerator.distinct_cores)
    for name, found in accelerator.distinct_cores.items():
        assert single_core(parse_accelerator(tmp_path / "core" / f"{name}.json")) == found


def test_several_dataflows_of_a_core_read_back_from_artifacts(tmp_path: Path) -> None:
    """The artifacts of accelerator and core keep several dataflows in the order of the file."""
    flows = [{"D1": ["K, 2", "C, 2"]}, {"D1": ["OX, 1"]}]
    accelerator = read(tmp_path, connected(2, ["0, 1"]), small=core("small") | {"dataflows": flows})
    expected = ((("D1", (("K", 2), ("C", 2))),), (("D1", (("OX", 1),)),))
    assert accelerator.distinct_cores["small"].dataflows == expected
    output = tmp_path / "accelerator.json"
    given = [
        "parse",
        "hardware",
        str(tmp_path / "accelerator.yaml"),
        "-o",
        str(output),
        "--core-folder",
        str(tmp_path / "core"),
    ]
    assert main(given) == 0
    assert parse_accelerator(output) == accelerator
    assert single_core(parse_accelerator(tmp_path / "core" / "small.json")).dataflows == expected


def test_the_artifact_of_a_core_depends_on_its_file_alone(tmp_path: Path) -> None:
    """The artifact of a core has the same bytes if the links change and if it is written alone."""
    file, all_of, alone = tmp_path / "accelerator.yaml", tmp_path / "core", tmp_path / "alone.json"
    read(tmp_path, connected(2, ["0, 1"]))
    assert main(["parse", "hardware", str(file), "--core-folder", str(all_of)]) == 0
    read(tmp_path, connected(3, ["0, 1", "0, 2"]))
    assert main(["parse", "hardware", str(file), "--core", "small", "-o", str(alone)]) == 0
    assert alone.read_bytes() == (all_of / "small.json").read_bytes()
    assert read_artifact(alone).schema == "tilewright/core"


def test_a_core_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message about an unknown core suggests the nearest name."""
    read(tmp_path, connected(1, []))
    assert main(["parse", "hardware", str(tmp_path / "accelerator.yaml"), "--core", "smal", "-o", "x"]) == 2
    assert "did you mean 'small'?" in capsys.readouterr().err


def test_other_artifacts_are_no_accelerator(tmp_path: Path) -> None:
    """An artifact of another kind is refused as an accelerator."""
    file = tmp_path / "coverage.json"
    from tilewright.base.artifacts.envelope import write_document

    write_document(file, "tilewright/coverage", {}, {})
    with pytest.raises(ArtifactError, match="wrong kind of artifact"):
        read_accelerator_artifact(file)


def test_the_table_lists_cores_links_and_paths(capsys: pytest.CaptureFixture[str]) -> None:
    """`parse hardware` prints a table of cores, links and paths."""
    assert main(["parse", "hardware", str(MULTI / "quad_core.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("4     pooling  pooling") for line in lines)
    assert any(line.split()[:4] == ["0->1", "link", "64", "0.08"] for line in lines)
    assert "0 to 1  0->1             64       0.08" in lines


def test_the_single_core_flow_says_that_there_are_several() -> None:
    """The message about several cores in a run of one core names the flow for systems."""
    told = r"has 7 cores, but one core is required here.*flow: multi.*cns, cost, allocate, schedule"
    with pytest.raises(InputError, match=told):
        single_core(parse_accelerator(MULTI / "quad_core.yaml"))


def test_the_schema_accepts_the_examples() -> None:
    """The JSON schema accepts the example accelerators."""
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("yaml")
    for path in OURS:
        # A key of a JSON object is text.
        data = json.loads(json.dumps(yaml.safe_load(path.read_text())))
        jsonschema.validate(data, json.loads(schema_text("multi_core")))


def test_lanes_of_a_dataflow_beyond_the_array_are_told(tmp_path: Path) -> None:
    """A notice tells that a dataflow in a core file asks for more lanes than the array has."""
    notices: list[str] = []
    beyond = core("small") | {"dataflows": [{"D1": ["K, 4"]}, {"D1": ["K, 4", "OX, 300"]}]}
    read(tmp_path, connected(2, ["0, 1"]), notices, small=beyond)
    assert any("dataflows[1].D1: takes 1200 lanes" in notice for notice in notices)


def test_single_memories_are_one_where_the_file_says_so(tmp_path: Path) -> None:
    """Memories of two cores can be declared as one; the cores keep their link, and copies of a core share the memory
    too."""
    parts = {"in": memory(operands=("I1",)), "w": memory(operands=("I2",)), "out": memory(operands=("O",))}
    sharing = {"core_memory_sharing": [["1.in", "0.out"]]}
    found = read(tmp_path, connected(2, ["0, 1"], **sharing), small=core(**parts))
    users = {f"{instance.memory.name} {instance.core_ids}": instance.names for instance in found.memory_instances}
    assert users["out (0, 1)"] == ("out", "in")
    assert len(users) == len(found.memory_instances) == 6
    assert path_table(found).path(0, 1).links == (0,)
    copied = read(tmp_path, connected(2, ["0, 1"], **sharing, core_counts={1: 2}), small=core(**parts))
    assert copied.shared_memories == (((0, "out"), (1, "in"), (2, "in")),)


def test_no_notice_sends_over_the_off_chip_memory_what_is_read_in_place(tmp_path: Path) -> None:
    """A notice about paths over the off-chip memory omits outputs that the other core reads in place."""
    parts = {"in": memory(operands=("I1",)), "w": memory(operands=("I2",)), "out": memory(operands=("O",))}
    notices: list[str] = []
    read(tmp_path, connected(2, [], core_memory_sharing=[["0.out", "1.in"]]), notices, small=core(**parts))
    assert [notice for notice in notices if notice.endswith("path from core 1 to 0 is over the off-chip memory")]
