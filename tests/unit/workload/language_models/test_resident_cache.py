"""Keys and values stay on chip from step to step if a memory has room for those of all blocks."""

from pathlib import Path

import pytest
import tilewright

from tests.unit.workload.language_models.models import TINY_LLAMA

HARDWARE = Path("config/hardware/zigzag/edge_tpu_like.yaml")
SRAM_BITS, BLOCKS = 16_777_216, 2
MODEL = {**TINY_LLAMA, "num_hidden_layers": BLOCKS}


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    """A core whose SRAM holds both inputs and the output, because both inputs of attention are results of layers."""
    text = HARDWARE.read_text()
    for old, new in (
        ("operands: [I1, O]", "operands: [I1, I2, O]"),
        ('["I1, tl", "O, tl", "O, th"]', '["I1, tl", "I2, tl", "O, tl", "O, th"]'),
        ('["I1, fh", "O, fh", "O, fl"]', '["I1, fh", "I2, fh", "O, fh", "O, fl"]'),
    ):
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "edge_tpu_like.yaml"
    path.write_text(text)
    return path


def cache_bits(context: int) -> int:
    """Bits of keys and values of all blocks, at 8 bits each."""
    head = MODEL["hidden_size"] // MODEL["num_attention_heads"]
    return 2 * BLOCKS * context * MODEL["num_key_value_heads"] * head * 8


@pytest.mark.parametrize("context", [64, 200_000])
def test_the_cache_stays_where_it_fits(unified: Path, context: int) -> None:
    """A cache that fits is read on chip by scores and weighted values, and other data have less room.

    Otherwise the cache is in the DRAM.
    """
    step = {"language_model": MODEL, "phase": "decode", "context": context - 1, "written_out": True}
    found = tilewright.map(
        workload=step,
        hardware=unified,
        mapping="config/mapping/zigzag/edge_tpu_like.yaml",
        model="corrected",
        exploit_data_locality=True,
    )
    fits = cache_bits(context) < SRAM_BITS
    assert fits == (context == 64)
    of_attention = [
        record for record in found.records if any(name.endswith(("scores", "values")) for name in record.layer_names)
    ]
    assert of_attention
    for record in of_attention:
        assert record.memory_levels["W"][-1] == ("sram_2MB" if fits else "dram")
        if fits:
            own = cache_bits(context) // (2 * BLOCKS)
            assert record.memory_reach is not None
            assert record.memory_reach.occupied_bits["sram_2MB"] >= cache_bits(context) - own
