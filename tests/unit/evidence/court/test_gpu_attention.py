"""Attention on GPUs: tiles, waves, splits and bytes, worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright_evidence.court.gpu import gpus
from tilewright_evidence.court.gpu_attention import (
    KERNEL,
    AlikeSequences,
    AttentionCall,
    AttentionKernel,
    HeadsOfCall,
    attention_part,
)

H100, HEADS, KERNEL_128 = gpus()["h100"], HeadsOfCall(32, 8, 128), AttentionKernel(128, 64)
IDEAL = {KERNEL: 0.0, "launch_us": 0.0, "block_us": 0.0, "tensor_share": 1.0, "memory_efficiency": 1.0}


def test_decoding_takes_whole_tiles_in_waves() -> None:
    """Five sequences of 32 heads are 160 blocks, two waves on 132 multiprocessors; 130 keys are three tiles of 64."""
    part = attention_part(H100, HEADS, KERNEL_128, AlikeSequences(5, 1, 130))
    assert part.waves.tolist() == [2]
    assert part.tiles.tolist() == [6]
    assert part.flops == 4 * 128 * 32 * 5 * 130
    assert part.kv_bytes == 2 * 2 * 128 * 8 * 5 * 130
    assert part.other_bytes == 2 * 2 * 128 * 32 * 5
    assert part.tile_flops == 4 * 128 * 64 * 128


def test_a_chunk_sees_its_history_and_itself() -> None:
    """A chunk of 256 tokens after 128 has two tiles of rows with four and six tiles of keys; the wave takes six."""
    part = attention_part(H100, HEADS, KERNEL_128, AlikeSequences(1, 256, 384))
    assert part.waves.tolist() == [1]
    assert part.tiles.tolist() == [6]
    assert AlikeSequences(1, 256, 384).pairs() == 256 * 128 + 256 * 257 / 2
    many = attention_part(H100, HEADS, KERNEL_128, AlikeSequences(66, 256, 384))
    assert many.waves.tolist() == [32]
    assert many.tiles.tolist() == [32 * 5]


def test_heads_of_a_group_share_a_tile_only_if_the_kernel_packs_them() -> None:
    """Query heads of a group share a tile only if the kernel packs them: four heads for each of eight key heads."""
    packing = AttentionKernel(16, 64, most_packed=4, splits=True)
    part = attention_part(H100, HEADS, packing, AlikeSequences(33, 1, 64))
    assert part.waves[0] == 2
    wide = attention_part(H100, HeadsOfCall(64, 8, 128), packing, AlikeSequences(33, 1, 64))
    assert wide.waves[0] == 16


def test_keys_are_cut_into_at_most_as_many_parts_as_tiles() -> None:
    """Five tiles of keys can be split into one to four parts; a further launch adds the parts up."""
    kernel = AttentionKernel(16, 64, most_packed=4, splits=True)
    part = attention_part(H100, HEADS, kernel, AlikeSequences(1, 1, 300))
    assert part.is_split.tolist() == [False, True, True, True]
    assert part.tiles.tolist() == [5, 3, 2, 2]
    slow = IDEAL | {"tensor_share": 1e-6}
    launched = slow | {"launch_us": 1.0}
    seconds = [part.seconds(H100, values)[0] for values in (slow, launched)]
    assert seconds[1] - seconds[0] == pytest.approx(1e-6)


def test_keys_are_read_again_if_their_heads_do_not_run_together() -> None:
    """Each of four heads reads the keys of many long sequences; the keys of short sequences stay in the L2."""
    kernel = AttentionKernel(64, 64, has_heads_outermost=True)
    assert attention_part(H100, HEADS, kernel, AlikeSequences(132, 1, 4096)).reads == 4
    assert attention_part(H100, HEADS, kernel, AlikeSequences(66, 1, 4096)).reads == 2
    assert attention_part(H100, HEADS, kernel, AlikeSequences(8, 1, 40960)).reads == 1
    assert attention_part(H100, HEADS, kernel, AlikeSequences(132, 1, 64)).reads == 1
    assert attention_part(H100, HEADS, KERNEL_128, AlikeSequences(132, 1, 4096)).reads == 1


def test_a_call_without_keys_takes_the_time_of_the_call() -> None:
    """The estimate with fewer keys than sequences is the fixed time of a kernel, and the bound is above 0."""
    call = AttentionCall(H100, [attention_part(H100, HEADS, KERNEL_128, AlikeSequences(64, 1, 0.5))])
    assert call.microseconds(IDEAL | {KERNEL: 2.5, "block_us": 9.0})[0] == pytest.approx(2.5, abs=0.1)
    assert 0 < call.bound < 0.1


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 64), new=st.integers(1, 512), history=st.integers(0, 4096), packed=st.sampled_from((1, 8)))
def test_an_ideal_machine_is_not_faster_than_its_roofline(count: int, new: int, history: int, packed: int) -> None:
    """An ideal machine is at least as slow as its roofline, because tiles, waves and parts only add time."""
    kernel = AttentionKernel(64, 64, most_packed=packed, splits=packed > 1)
    alike = AlikeSequences(count, new, new + history)
    call = AttentionCall(H100, [attention_part(H100, HEADS, kernel, alike)])
    estimate, cause = call.microseconds(IDEAL)
    assert estimate >= max(call.roofline_terms[:2]) * (1 - 1e-12) >= call.bound * (1 - 1e-12)
    assert cause in ("tensor cores", "DRAM")


def test_a_mixed_call_is_the_sum_of_its_parts() -> None:
    """A mixed call takes the sum of its parts with a single call time."""
    values = IDEAL | {KERNEL: 3.0, "block_us": 1.0}
    parts = [
        attention_part(H100, HEADS, KERNEL_128, alike)
        for alike in (AlikeSequences(1, 64, 512), AlikeSequences(9, 1, 99))
    ]
    times = [AttentionCall(H100, [part]).microseconds(values)[0] for part in parts]
    assert AttentionCall(H100, parts).microseconds(values)[0] == pytest.approx(np.sum(times) - 3.0)
    assert AttentionCall(H100, parts).microseconds(values | {KERNEL: 1e4})[1] == "kernel"
