"""Depth-first schedules: sums, modes, refusals and the verb."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.cli.main import main
from tilewright.cost.energy_terms import ENERGY_TERMS, TermCost
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Unrolling
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.stack_cost import COPY
from tilewright.workload.layer import Layer

from tests.unit.tiles.depth_first.fsrcnn import HARDWARE, MAPPING, PROJECT, WORKLOAD, model

TPU = PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml"


def convolution(
    place: int, k: int, c: int, size: int, kernel: int = 3, stride: int = 1, pad: int = 0
) -> dict[str, Any]:
    """A convolution of a chain."""
    present = (size - 1) * stride + kernel - 2 * pad
    return {
        "id": place,
        "name": f"conv{place}",
        "operator_type": "Conv",
        "equation": "O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]",
        "dimension_relations": [f"ix = {stride}*ox + 1*fx", f"iy = {stride}*oy + 1*fy"],
        "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
        "loop_sizes": [1, k, c, size, size, kernel, kernel],
        "pr_loop_dims": ["IX", "IY"],
        "pr_loop_sizes": [present, present],
        "padding": [[pad, pad], [pad, pad]],
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"W": place, "I": max(0, place - 1)},
    }


def test_parts_add_up_and_one_tile_is_one_tile() -> None:
    """Energy terms and memories add up to the energy in each mode, and parts add up to the latency.

    If one tile is the whole layer, all modes have equal costs.
    """
    whole = {}
    for mode in MODES:
        for tile in ((240, 135), (2000, 2000)):
            total = model("tilewright").cost(0, 7, tile, mode)
            parts = [*total.terms_pj.values(), *total.memory_pj.values()]
            assert math.isclose(total.energy_pj, math.fsum(parts), rel_tol=1e-9)
            assert total.latency_cycles() == sum(total.cycles.values())
            whole[mode, tile] = (total.energy_pj, total.latency_cycles(), total.mac_count)
    assert len({whole[mode, (2000, 2000)] for mode in MODES}) == 1
    macs = [whole[mode, (240, 135)][2] for mode in MODES]
    assert macs[0] > macs[1] > macs[2] == 8_362_594_208


@pytest.mark.parametrize("mode", MODES)
def test_a_core_leaks_in_every_cycle_of_a_schedule(mode: str) -> None:
    """Static power adds its energy in every cycle, also while data are copied, and changes nothing else."""
    layers = [convolution(0, 8, 4, 12), convolution(1, 8, 8, 12, pad=1)]
    described = yaml.safe_load(TPU.read_text())
    leaky = described | {"clock_frequency": "500 MHz"}
    leaky["memories"] = described["memories"] | {"sram_2MB": described["memories"]["sram_2MB"] | {"leakage": "3 mW"}}
    without, found = (
        tilewright.depth_first(layers, one, tile_x=4, tile_y=6, overlap_mode=mode)[0].ledger
        for one in (described, leaky)
    )
    assert found.latency_cycles() == without.latency_cycles()
    assert found.cycles["copies"] > 0
    assert found.terms_pj["leakage"] == pytest.approx(3 * 2 * found.latency_cycles())
    assert found.energy_pj - without.energy_pj == pytest.approx(found.terms_pj["leakage"])


class _Standby:
    """Energy term of 5 pJ in each cycle, whatever the core does."""

    def concerns(self, core: Core) -> bool:
        """Whether the term applies: always."""
        return True

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """The cost, which grows with latency."""
        return TermCost(pj_a_cycle=5)

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Return 5 pJ for a waiting cycle, as for any other cycle."""
        return 5


Standby = _Standby()


@pytest.mark.parametrize("mode", MODES)
def test_a_term_that_is_entered_counts_in_every_cycle_of_a_schedule(mode: str) -> None:
    """A plug-in's term counts in every cycle, also while data are copied, as static power does."""
    layers = [convolution(0, 8, 4, 12), convolution(1, 8, 8, 12, pad=1)]
    described = yaml.safe_load(TPU.read_text()) | {"name": "on standby"}  # costs of its copies are not known yet
    entries = {ENERGY_TERMS.owner: {"standby": f"{__name__}:Standby"}}
    enter(entries)
    try:
        found = tilewright.depth_first(layers, described, tile_x=4, tile_y=6, overlap_mode=mode)[0].ledger
    finally:
        withdraw(entries)
    assert found.cycles["copies"] > 0
    assert found.terms_pj["standby"] == pytest.approx(5 * found.latency_cycles())


def test_one_layer_in_one_tile_is_the_layer() -> None:
    """One layer in one tile costs, without copies, what `map` says if the layer's input is already in the SRAM."""
    layers = [convolution(0, 8, 4, 12)]
    reach = {"topmost": {"I": "sram_2MB", "O": "dram", "W": "dram"}}
    mapping = [{"name": "default", "memory_reach": reach}]
    mapped = tilewright.map(layers, TPU, mapping, preset="zigzag", model="corrected")
    for mode in MODES:
        (found,) = tilewright.depth_first(layers, TPU, tile_x=12, tile_y=12, overlap_mode=mode)
        ledger = found.ledger
        copies = sum(energy for (_, cause), energy in ledger.memory_pj.items() if cause == COPY)
        assert ledger.energy_pj - copies == pytest.approx(mapped.summary["energy_pj"], rel=1e-12)
        assert ledger.latency_cycles() - ledger.cycles["copies"] == mapped.summary["latency_cycles"]
        assert copies > 0
        assert found.repeated_macs == 0


@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (1, 1), (2, 1), (3, 0)])
def test_strides_and_padding(stride: int, pad: int) -> None:
    """Fully cached tiles have as many operations as the whole layers, and modes with recomputation at least as many."""
    last = convolution(1, 4, 4, 7, 3, stride, pad)
    size = last["pr_loop_sizes"][0]
    layers = [convolution(0, 4, 4, size, 3, 1, pad), last]
    whole = tilewright.depth_first(layers, TPU, tile_x=7, tile_y=7, overlap_mode="fully-cached")[0].ledger.mac_count
    for tile in (1, 2, 3, 5, 9):
        schedules = tilewright.depth_first(layers, TPU, tile_x=tile, tile_y=tile, lpf_limit=3)
        macs = {schedule.stacks[0].mode: schedule.ledger.mac_count for schedule in schedules}
        assert macs["fully-cached"] == whole
        assert macs["fully-recompute"] >= macs["h-cached-v-recompute"] >= whole


def test_stacks_are_costed_by_themselves() -> None:
    """Cuts make stacks whose costs add up; each stack costs as much as its layers alone."""
    (found,) = tilewright.depth_first(
        WORKLOAD,
        HARDWARE,
        MAPPING,
        tile_x=240,
        tile_y=135,
        overlap_mode="fully-cached",
        cut=["conv5", "conv1"],
        reading="defines",
    )
    assert [(stack.first, stack.last) for stack in found.stacks] == [(0, 1), (2, 5), (6, 7)]
    alone = [model().cost(first, last, (240, 135), "fully-cached") for first, last in ((0, 1), (2, 5), (6, 7))]
    assert found.energy_pj == pytest.approx(sum(ledger.energy_pj for ledger in alone), rel=1e-12)


class Setup:
    """Energy term of a nanojoule for each layer."""

    concerns = staticmethod(lambda core: True)
    cost = staticmethod(lambda layer, core, unrolling: TermCost(fixed_pj=1000.0))
    waiting_pj_a_cycle = staticmethod(lambda core: 0.0)


def test_the_model_of_defines_refuses_terms() -> None:
    """The reading `defines` refuses terms, because its costs of tiles do not have them."""
    entries = {ENERGY_TERMS.owner: {"setup": f"{__name__}:Setup"}}
    enter(entries)
    try:
        with pytest.raises(InputError, match="neither static power, nor waiting, nor terms of plug-ins, got setup"):
            tilewright.depth_first(WORKLOAD, HARDWARE, MAPPING, tile_x=240, tile_y=135, reading="defines")
    finally:
        withdraw(entries)


def test_everything_wrong_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One run reports all errors: names with the nearest one, and sizes with the allowed ones; the exit code is 2."""
    given = ["--hardware", str(HARDWARE), "--workload", str(WORKLOAD), "--mapping", str(MAPPING)]
    wrong = ["--tile-x", "0", "--tile-y", "4", "--overlap-mode", "fully-cache", "--cut", "conv12", "--cut", "conv7"]
    assert main(["depth-first", *given, *wrong]) == 2
    told = capsys.readouterr().err
    assert "--tile-x: the size of a tile must be a whole number of positions, got 0 (allowed: from 1)" in told
    assert "did you mean 'fully-cached'?" in told
    assert "did you mean 'conv2'?" in told
    assert "this is the last layer" in told


def test_networks_that_are_no_chains_are_refused() -> None:
    """A network that is no chain is refused, with each cause once and the layers concerned."""
    with pytest.raises(tilewright.InputError) as told:
        tilewright.depth_first(PROJECT / "config" / "workload" / "resnet18.onnx", TPU, tile_x=7, tile_y=7)
    text = str(told.value)
    assert "is not the output of the layer before it, and only chains are supported, got layer2.0.conv2" in text
    assert "comes through an operator Add, which moves elements or has no cost" in text
    narrow = [convolution(0, 4, 4, 8), convolution(1, 4, 8, 6)]
    with pytest.raises(tilewright.InputError, match="reads 8 channels of a layer that makes 4 channels, got conv1"):
        tilewright.depth_first(narrow, TPU, tile_x=2, tile_y=2)
    short = [convolution(0, 4, 4, 7), convolution(1, 4, 4, 6)]
    with pytest.raises(tilewright.InputError, match="reads 8 positions along OX of a layer that makes only 7"):
        tilewright.depth_first(short, TPU, tile_x=2, tile_y=2)


def test_files_are_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb writes what the function returns, with the same bytes each time."""
    given = ["--hardware", str(HARDWARE), "--workload", str(WORKLOAD), "--mapping", str(MAPPING)]
    asked = ["--tile-x", "240", "--tile-y", "72", "--tile-y", "540", "--objective", "energy"]
    for name in ("one", "two"):
        assert main(["depth-first", *given, *asked, "-o", str(tmp_path / name)]) == 0
    assert "240 x 72" in capsys.readouterr().out
    for file in ("depth_first.json", "depth_first.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    written = json.loads((tmp_path / "one" / "depth_first.json").read_text())["schedules"]
    found = tilewright.depth_first(WORKLOAD, HARDWARE, MAPPING, tile_x=240, tile_y=[72, 540], objective="energy")
    assert [schedule["energy_pj"] for schedule in written] == [schedule.energy_pj for schedule in found]
    assert len((tmp_path / "one" / "depth_first.csv").read_text().splitlines()) == 1 + len(written)
