"""Accelerator files that contain their core descriptions, and cores that are counted several times."""

import copy
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import load_yaml
from tilewright.cli.config_files import read_system
from tilewright.hardware.core_paths import core_files_of, find_core_file
from tilewright.hardware.dotted_paths import key_path
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_accelerator

from tests.unit.hardware.system_cases import MULTI, connected, core, mesh, offchip, read, write


def contained(data: dict[str, Any], **cores: Any) -> dict[str, Any]:
    """Return the accelerator with its core descriptions inside."""
    given = {"small": core(), "dram": offchip()} | cores
    named = data["cores"]
    listed = named if isinstance(named, list) else list(named.values())
    stems = [Path(name).stem for name in listed]
    changed = data | {"cores": stems if isinstance(named, list) else dict(zip(named, stems, strict=True))}
    if "offchip_core" in data:
        changed["offchip_core"] = Path(data["offchip_core"]).stem
    return changed | {"core_files": given}


def told(data: dict[str, Any]) -> list[str]:
    """Return the problems of an accelerator."""
    with pytest.raises(InputError) as raised:
        parse_accelerator(data)
    return [str(problem) for problem in raised.value.problems]


@pytest.mark.parametrize("data", [connected(2, ["0, 1"]), mesh(2, 2)], ids=["links", "mesh"])
def test_descriptions_in_the_file_are_as_good_as_files(data: dict[str, Any], tmp_path: Path) -> None:
    """Core descriptions inside the accelerator file give the same accelerator as core files."""
    assert parse_accelerator(contained(data)) == read(tmp_path, data)


@pytest.mark.parametrize("path", sorted(MULTI.glob("*.yaml")), ids=lambda path: path.stem)
def test_our_own_accelerators_are_the_same_in_one_file(path: Path) -> None:
    """Each shipped accelerator reads the same when its core files are moved into it."""
    data = load_yaml(path).data
    cores = {Path(name).stem: find_core_file(name, path.parent) for _, name in core_files_of(data).values()}
    whole = contained(data, **{name: load_yaml(file).data for name, file in cores.items() if file})
    for name in set(whole["core_files"]) - set(cores):
        del whole["core_files"][name]
    assert parse_accelerator(whole) == parse_accelerator(path)


def test_copies_are_linked_as_their_core_is(tmp_path: Path) -> None:
    """Copies of a core have its role and operator types; a bus connects all copies, and each copy has its own links."""
    links = [{"type": "bus", "cores": [0, 1]}, {"cores": [1, 2], "directed": True}, {"cores": [2, 3], "bandwidth": 8}]
    short = connected(4, links, core_roles={2: "simd"}, core_operator_types={2: ["Relu"]}, routers=[0, 2])
    counted = read(tmp_path, short | {"core_counts": {0: 2, 2: 3}})
    copies = [
        {"type": "bus", "cores": [0, 4, 1]},
        *({"cores": [1, copy], "directed": True} for copy in (2, 5, 6)),
        *({"cores": [copy, 3], "bandwidth": 8} for copy in (2, 5, 6)),
    ]
    roles, types = dict.fromkeys((2, 5, 6), "simd"), {key: ["Relu"] for key in (2, 5, 6)}
    long = connected(7, copies, core_roles=roles, core_operator_types=types, routers=[0, 4, 2, 5, 6])
    assert counted == read(tmp_path, long)


def test_copies_share_memory(tmp_path: Path) -> None:
    """The copies of a core belong to the sharing group of the core."""
    found = read(tmp_path, connected(3, ["0, 2"], core_memory_sharing=["0, 1"], core_counts={1: 2}))
    assert found.sharing_groups == ((0, 1, 3),)


def test_a_mesh_is_filled_with_copies() -> None:
    """One core with a count fills a mesh like a full list of cores."""
    data = contained(mesh(2, 3))
    full = parse_accelerator(data)
    few = data | {"cores": ["small", "dram"], "core_counts": {0: 6}, "graph": data["graph"] | {"offchip_core_id": 1}}
    counted = parse_accelerator(few)
    assert isinstance(full, MultiCoreAccelerator)
    assert isinstance(counted, MultiCoreAccelerator)
    assert counted.core_ids == (0, 1, 2, 3, 4, 5, 6)
    assert counted.offchip_core_id == 1
    ids = dict(zip(full.onchip_core_ids, counted.onchip_core_ids, strict=True)) | {6: 1}
    edges = sorted(tuple((ids[a], ids[b]) for a, b in link.edges) for link in full.links if link.kind != "port")
    assert edges == sorted(link.edges for link in counted.links if link.kind != "port")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"core_counts": {7: 2}}, "core_counts.7: no core has this id"),
        ({"core_counts": {0: 0}}, "core_counts.0: must be greater than 0"),
        ({"core_counts": {0: 100_000}}, "core_counts.0: must not be greater than 1024"),
        ({"core_counts": {2: 2}}, "core_counts.2: an accelerator has only one off-chip core"),
        ({"core_files": {}}, "core_files: too few items"),
        ({"cores": {0: "smal", 1: "small"}}, "cores.0: core_files has no such core, got 'smal'"),
        ({"core_files": {"small": core() | {"memories": 3}, "dram": offchip()}}, "core_files.small.memories: must be"),
    ],
)
def test_what_is_wrong_is_told(changes: dict[str, Any], said: str) -> None:
    """Each problem stands at its key."""
    found = told(contained(connected(2, ["0, 1"])) | changes)
    assert any(said in one for one in found), found


def test_a_special_core_of_a_graph_stands_once() -> None:
    """The pooling core of a graph cannot have a count."""
    data = contained(mesh(2, 1, {"pooling_core_id": 2, "offchip_core_id": 3}))
    assert any(
        "core_counts.2: is the core that pooling_core_id names" in one for one in told(data | {"core_counts": {2: 2}})
    )


def test_the_workflow_knows_contained_cores(tmp_path: Path) -> None:
    """The workflow reads contained cores. A changed core changes the key of the graph and of its own cost table."""
    data = contained(connected(2, ["0, 1"]) | {"cores": {0: "small", 1: "other"}}, other=core("other"))
    write(tmp_path, one=data)
    found = read_system(tmp_path / "one.yaml")
    assert found.core_names == ("small", "other")
    changed = copy.deepcopy(data)
    changed["core_files"]["other"]["memories"]["sram"]["size"] = 1024
    write(tmp_path, two=changed, three=data | {"core_counts": {0: 2}})
    for other, is_same in (("two", True), ("three", False)):
        after = read_system(tmp_path / f"{other}.yaml")
        assert (after.of_cost_table("small") == found.of_cost_table("small")) is is_same
        assert after.of_graph != found.of_graph
    assert read_system(tmp_path / "two.yaml").of_core("other") != found.of_core("other")


def test_ids_are_numbers_in_dotted_paths() -> None:
    """A new core id in a dotted path is read as a number."""
    assert key_path({"cores": {0: "a"}}, "cores.3") == ("cores", 3)
