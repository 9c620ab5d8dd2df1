"""Parts of a mapping file without effect on a network and its core: each has a notice with its line."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright import map_workload
from tilewright.base.errors import MappingError
from tilewright.base.unused import unused_in
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.run import read_problem
from tilewright.search.options import SearchOptions

CORE = {
    "name": "core",
    "operational_array": {"unit_energy": 0.04, "unit_area": 1, "dimensions": ["D1"], "sizes": [8]},
    "memories": {
        "l1": {
            "size": 1048576,
            **{"r_cost": 20, "w_cost": 20, "area": 0, "latency": 1},
            "operands": ["I1", "I2", "O"],
            "ports": [
                {
                    **{"name": "rw", "type": "read_write", "bandwidth_min": 64, "bandwidth_max": 64},
                    "allocation": ["I1, tl", "I2, tl", "O, tl", "O, fl"],
                }
            ],
            "served_dimensions": ["D1"],
        }
    },
}
LINKS = {"memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}
PRODUCT = {
    **{"id": 0, "name": "mm", "operator_type": "Gemm", "equation": "O[a][b]+=I[a][c]*W[c][b]"},
    **{"loop_dims": ["A", "B", "C"], "loop_sizes": [4, 16, 5]},
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    "operand_source": {"I": 0, "W": 0},
}
CONVOLUTION = {
    **PRODUCT,
    **{"name": "conv", "operator_type": "Conv"},
    "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
    "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
    **{"loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"], "loop_sizes": [1, 8, 1, 5, 5, 3, 3]},
}


def told(folder: Path, layer: dict[str, Any], *entries: dict[str, Any]) -> list[str]:
    """Return the notices about unused parts of the entries, by line and key."""
    file = folder / "mapping.yaml"
    file.write_text(yaml.safe_dump([{**entry, **LINKS} for entry in entries], sort_keys=False))
    problem = read_problem(Descriptions(CORE, [layer], file), SearchOptions())
    return [str(notice).removeprefix(str(file)) for notice in unused_in(problem.notices)]


def test_loops_that_no_layer_of_an_entry_has(tmp_path: Path) -> None:
    """A loop that no layer of an entry has gets a notice, even if other networks have this loop."""
    order = [["FY", 3], ["FX", 3], ["IX", 5], ["*", "*"]]
    found = told(tmp_path, CONVOLUTION, {"name": "default", "temporal_ordering": order})
    assert len(found) == 1
    assert "default.temporal_ordering[2]: no layer that this entry selects has the loop dimension IX" in found[0]
    found = told(tmp_path, PRODUCT, {"name": "default", "spatial_mapping": {"D1": ["K, 4"]}})
    assert "default.spatial_mapping.D1: no layer that this entry selects has the loop dimension K" in found[0]
    assert told(tmp_path, PRODUCT, {"name": "default", "spatial_mapping": {"D1": ["B, 4"]}}) == []


def test_an_entry_of_another_network_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    """An entry that selects no layer gets a notice, and so does its unknown loop dimension; the run goes on."""
    own = {"name": "default", "spatial_mapping": {"D1": ["B, 8"]}}
    odd = {"spatial_mapping": {"D1": ["XY, 8"]}}
    found = told(tmp_path, PRODUCT, own, {"name": "head_of_another_network", **odd})
    assert len(found) == 1
    assert "head_of_another_network.name: selects no layer" in found[0]
    found = told(tmp_path, PRODUCT, own, {"name": "Softmax", **odd})
    assert len(found) == 1
    assert "Softmax.spatial_mapping.D1: no layer of workload has this loop dimension, got 'XY'" in found[0]
    assert told(tmp_path, PRODUCT, own, {"name": "Softmax", "spatial_mapping": {"D1": ["K, 8"]}}) == []


def test_keys_that_others_of_the_entry_overrule(tmp_path: Path) -> None:
    """Notices list keys without effect: hints for a fixed side or a missing side, and unused dimension names."""
    hints = {"D1": ["B"], "D7": ["A"]}
    entry = {"name": "default", "spatial_mapping": {"D1": ["B, 8"]}, "spatial_mapping_hint": hints}
    found = told(tmp_path, PRODUCT, {**entry, "layer_dimension_names": ["P", "Q", "R"]})
    assert ["default.spatial_mapping_hint.D1: has no effect: spatial_mapping fixes" in line for line in found].count(
        True
    ) == 1
    assert ["default.spatial_mapping_hint.D7: has no effect: no core" in line for line in found].count(True) == 1
    assert ["default.layer_dimension_names: has no effect" in line for line in found].count(True) == 1


def test_an_ordering_that_nothing_matches_is_told_with_its_entry() -> None:
    """The error about an ordering that no loop order matches names the entry and the loop without iterations."""
    entry = {"name": "default", "spatial_mapping": {"D1": ["B, 4"]}, **LINKS}
    small = {**PRODUCT, "loop_sizes": [1, 8, 4]}
    with pytest.raises(
        MappingError, match=r"temporal_ordering of the entry 'default': the spatial mapping leaves no loop of A"
    ):
        map_workload([small], CORE, [{**entry, "temporal_ordering": [["C", "*"], ["A", "*"]]}])


def test_what_was_not_used_is_in_the_summary() -> None:
    """The summary lists unused keys, and has no such field without unused keys."""
    entries = [{"name": "default", **LINKS}, {"name": "other", **LINKS}]
    summary = map_workload([PRODUCT], CORE, entries).summary
    assert [row["key"] for row in summary["unused"]] == ["other.name"]
    assert "unused" not in map_workload([PRODUCT], CORE, entries[:1]).summary
