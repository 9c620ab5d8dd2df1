"""Values of scripts: equal to zigzag-dse 3.9.1 digit by digit, and to the verbs with the same choices."""

from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.main_stage import (
    AcceleratorParserStage,
    CostModelStage,
    CumulativeCME,
    LomaStage,
    MainStage,
    MinimalEDPStage,
    MinimalEnergyStage,
    MinimalLatencyStage,
    SimpleSaveStage,
    SpatialMappingGeneratorStage,
    SumStage,
    WorkloadParserStage,
    WorkloadStage,
)

from tests.unit.main_stage.conftest import FLOWS, files, flow

REDUCTION = {"latency": MinimalLatencyStage, "energy": MinimalEnergyStage, "EDP": MinimalEDPStage}
RECORDED = {
    "energy_total": "energy_total",
    "mac_energy": "mac_energy",
    "mem_energy": "mem_energy",
    "mem_energy_breakdown": "energy_breakdown",
    "latency_total0": "latency_total0",
    "latency_total1": "latency_total1",
    "latency_total2": "latency_total2",
    "stall_slack_comb": "temporal_stall",
    "ideal_cycle": "ideal_cycle",
    "ideal_temporal_cycle": "ideal_temporal_cycle",
    "data_onloading_cycle": "onloading",
    "data_offloading_cycle": "offloading",
    "systolic_drain_cycle": "systolic_drain",
    "mem_utili_shared": "mem_utilization_shared",
}
"""Maps an attribute of a CME to its name in the recorded runs."""
DIRECTIONS = {"tl": "rd_out_to_low", "fl": "wr_in_by_low", "th": "rd_out_to_high", "fh": "wr_in_by_high"}


def stages(objective: str) -> list[Any]:
    """Return the stages of `get_hardware_performance_zigzag`."""
    kept = REDUCTION[objective]
    parsers = [WorkloadParserStage, AcceleratorParserStage, SumStage, WorkloadStage]
    return [*parsers, kept, SpatialMappingGeneratorStage, kept, LomaStage, CostModelStage]


def keywords(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a recorded run."""
    return files(recorded["hardware"], recorded["mapping"]) | {
        "loma_lpf_limit": recorded["lpf_limit"],
        "nb_mappings_generated": recorded["nb_spatial_mappings"],
        "enable_mix_spatial_mapping_generation": recorded["mixed_spatial_mapping"],
        "temporal_mapping_type": recorded["temporal_mapping_type"],
    }


@pytest.mark.parametrize("name", FLOWS)
def test_every_figure_is_that_of_the_reference(name: str) -> None:
    """Every figure of each layer and of the sum equals the recorded run."""
    recorded = flow(name)
    ((total, pairs),) = MainStage(stages(recorded["objective"]), **keywords(recorded)).run()
    assert [cme.layer.name for cme, _ in pairs] == [one["layer"]["name"] for one in recorded["layers"]]
    for (cme, _), one in zip(pairs, recorded["layers"], strict=True):
        for attribute, key in RECORDED.items():
            assert getattr(cme, attribute) == one["result"][key], (cme.layer.name, attribute)
        words = {operand: [dict(level) for level in levels] for operand, levels in cme.memory_word_access.items()}
        theirs = {
            operand: [{DIRECTIONS[name]: count for name, count in level.items()} for level in levels]
            for operand, levels in one["result"]["word_accesses"].items()
        }
        assert words == theirs
        assert _loops(cme.temporal_mapping.mapping_dic_origin) == one["result"]["temporal_levels"]
        assert _used(cme.user_spatial_mapping) == _used(one["spatial_mapping"])
    assert isinstance(total, CumulativeCME)
    assert total.energy_total == pytest.approx(recorded["network_energy"], rel=1e-14)
    assert total.latency_total2 == recorded["network_latency"]
    assert total.mem_energy == pytest.approx(sum(cme.mem_energy for cme, _ in pairs), rel=1e-14)
    assert total.layer_ids == [cme.layer.id for cme, _ in pairs]


def _loops(levels: dict[str, Any]) -> dict[str, Any]:
    """Return loops in the form of JSON."""
    return {operand: [[list(loop) for loop in loops] for loops in of_operand] for operand, of_operand in levels.items()}


def _used(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the sides of the array that have loops."""
    return {side: dict(loops) for side, loops in mapping.items() if loops}


def test_the_verb_says_the_same(tmp_path: Path) -> None:
    """`tilewright.map` with the same choices gives the same totals and saved files."""
    given = files()
    made = [WorkloadParserStage, AcceleratorParserStage, SimpleSaveStage, *stages("latency")[2:]]
    ((total, pairs),) = MainStage(made, **given, loma_lpf_limit=4, dump_folder=str(tmp_path / "out")).run()
    mapped = tilewright.map(given["workload"], given["accelerator"], given["mapping"], preset="zigzag", lpf_limit=4)
    assert (total.energy_total, total.latency_total2) == (mapped.summary["energy_pj"], mapped.summary["latency_cycles"])
    by_name = {name: record for record in mapped.records for name in record.names}
    assert [(cme.energy_total, cme.latency_total2) for cme, _ in pairs] == [
        (by_name[layer.name].energy_pj, by_name[layer.name].latency_cycles) for _, (layer, _) in pairs
    ]
    saved = (tmp_path / "out" / "overall_simple.json").read_text()
    assert f'"energy": {total.energy_total}' in saved
    assert total.__simplejsonrepr__()["latency"] == total.latency_total2


def test_sums_and_multiples_of_cmes() -> None:
    """`sum`, `+` and `*` of evaluations add up figures and compute utilizations from the sums."""
    pairs = MainStage([one for one in stages("energy") if one is not SumStage], **files(), loma_lpf_limit=3).run()
    cmes = [cme for cme, _ in pairs]
    total = sum(cmes)
    assert total.energy_total == pytest.approx(sum(cme.energy_total for cme in cmes))
    assert (cmes[0] + cmes[1] + cmes[2]).latency_total2 == sum(cme.latency_total2 for cme in cmes[:3])
    assert (cmes[0] * 3).energy_total == 3 * cmes[0].energy_total
    assert (cmes[0] * 3).mem_energy_breakdown["O"][0] == 3 * cmes[0].mem_energy_breakdown["O"][0]
    assert total.mac_utilization2 == total.ideal_cycle / total.latency_total2
    assert total.mem_energy_breakdown["O"][0] == pytest.approx(sum(cme.mem_energy_breakdown["O"][0] for cme in cmes))


def test_what_is_not_there_is_told_with_the_nearest_name() -> None:
    """An unknown attribute of a CME is an error with the nearest name; older spellings are accepted."""
    cme, _ = MainStage([one for one in stages("energy") if one is not SumStage], **files(), loma_lpf_limit=3).run()[0]
    with pytest.raises(AttributeError, match=r"latency_totals2.*did you mean 'latency_total2'"):
        _ = cme.latency_totals2
    assert cme.MAC_energy == cme.mac_energy  # the name before release 3.0
    assert cme.energy_breakdown == cme.mem_energy_breakdown
    assert cme.core is cme.accelerator
    assert cme.layer.loop_dim_size == cme.layer.layer_dim_sizes
