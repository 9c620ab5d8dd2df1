"""Matrix products on GPUs in the court: tiles, splits, bounds and wrong rows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.cli.main import main
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.gpu import GPU, SPLITS, TILES, added_up, gpus, prepare, product

IDEAL = {"launch_us": 0.0, "tensor_efficiency": 1.0, "memory_efficiency": 1.0, "step_us": 0.0}
SIZES = st.integers(1, 4096)


@settings(max_examples=60, deadline=None)
@given(device=st.sampled_from(("a100", "h100")), m=SIZES, n=SIZES, k=SIZES)
def test_an_ideal_machine_is_not_faster_than_its_roofline(device: str, m: int, n: int, k: int) -> None:
    """An ideal machine is at least as slow as its roofline, because tiles, waves and parts only add time."""
    one = product(gpus()[device], "bf16", m, n, k)
    seconds, _ = one.seconds(IDEAL)
    assert seconds >= one.flops / one.peak * (1 - 1e-12)
    assert seconds >= one.data_bytes / one.gpu.dram_bytes_per_s * (1 - 1e-12)


def test_a_wave_that_is_full_is_the_peak() -> None:
    """A full wave of 108 blocks of 256 x 128 on 108 multiprocessors reaches the peak if data move in no time."""
    gpu = replace(gpus()["a100"], dram_bytes_per_s=1e30, l2_bytes_per_s=1e30)
    one = product(gpu, "bf16", 256 * 12, 128 * 9, 65536)
    assert one.seconds(IDEAL)[0] == pytest.approx(one.flops / one.peak, rel=1e-3)


def test_equal_times_of_two_parts_hide_each_other_in_part() -> None:
    """Two equal times add up to one of them times the cube root of two; a much shorter time hardly counts."""
    one, two, none = np.array([2.0]), np.array([2.0]), np.array([0.0])
    assert added_up([one, two])[0] == pytest.approx(2 * 2 ** (1 / 3))
    assert added_up([one, two / 10])[0] == pytest.approx(2.0, rel=1e-3)
    assert added_up([none, none])[0] == 0


def test_a_sum_that_is_cut_needs_a_second_kernel() -> None:
    """A split sum costs one more launch. A sum stays whole if that is cheaper, and fp8 sums always stay whole."""
    gpu = gpus()["a100"]
    slow = {**IDEAL, "step_us": 1.0}
    one = product(gpu, "bf16", 16, 32, 65536)
    cut = one.seconds(slow)[0]
    assert one.seconds({**slow, "launch_us": 5.0})[0] == pytest.approx(cut + 1e-5)
    assert one.seconds({**slow, "launch_us": 1e6})[0] == pytest.approx(1 + 65536 / 64 * 1e-6, rel=1e-3)
    assert len(product(gpus()["h100"], "fp8", 16, 32, 65536).steps) == len(TILES)


def test_a_long_sum_is_cut() -> None:
    """A long sum of one tile is split into 32 parts; if steps take long, they limit the time."""
    one = product(gpus()["a100"], "bf16", 16, 32, 65536)
    assert one.steps.min() == 65536 / 64 / max(SPLITS)
    assert len(one.steps) == len(TILES) * len(SPLITS)
    assert one.seconds({**IDEAL, "step_us": 1.0})[1] == "steps"
    short = product(gpus()["a100"], "bf16", 16, 32, 64)
    assert len(short.steps) == len(TILES)


def test_quantising_is_a_launch_and_five_bytes_an_input() -> None:
    """Quantization to fp8 takes a launch, and moves five bytes for each input."""
    gpu, launch = gpus()["h100"], {**IDEAL, "launch_us": 10.0}
    half, eight = (product(gpu, kind, 16, 64, 64).seconds(launch)[0] for kind in ("bf16", "fp8"))
    assert eight - half == pytest.approx(1e-5, rel=0.01)
    assert product(gpu, "fp8", 16, 64, 64).quantised_bytes == 5 * 16 * 64


def test_the_bound_is_held_against_the_shortest_time() -> None:
    """The bound is compared with the shortest time of all frameworks; the measurement is their median."""
    for one in prepare(set_files(DATA / GPU.name, GPU.patterns)):
        case = one.case(GPU.values())
        assert case.fastest is not None
        assert case.bound <= case.fastest <= case.measured
        assert case.bound <= case.roofline


def test_unknown_devices_and_types_are_told_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown devices and types are reported together with the allowed values."""
    folder = tmp_path / GPU.name
    folder.mkdir()
    text = (DATA / GPU.name / "sample.csv").read_text()
    (folder / "rows.csv").write_text(text.replace("a100", "a10").replace("fp8", "fp4"))
    assert main(["accuracy", GPU.name, "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "no such device, got 'a10' (allowed: a100, h100)" in told
    assert "no such type, got 'fp4'" in told
