"""Small attentions on a small core, and random ones."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tilewright.base.yamlfile import document_of
from tilewright.hardware.core import Core
from tilewright.pipeline.sources import parse_accelerator, parse_mapping, single_core
from tilewright.tiles.attention.costs import AttentionCosts
from tilewright.tiles.attention.shape import AttentionShape, Bits, NetworkAttention, language_model_attentions
from tilewright.tiles.depth_first.options import LayerOptions
from tilewright.workload.language_models.reader import describe_language_model

SRAM_BITS = 8192


def port(name: str, kind: str, bits: int, *links: str) -> dict[str, Any]:
    """A port of a memory."""
    return {"name": name, "type": kind, "bandwidth_min": bits, "bandwidth_max": bits, "allocation": list(links)}


def memory(
    size: int, cost: float, served: list[str], ports: list[dict[str, Any]], operands: list[str]
) -> dict[str, Any]:
    """A memory of the core."""
    return {
        "operands": operands,
        "size": size,
        "r_cost": cost,
        "w_cost": cost + 1,
        "area": 0,
        "latency": 1,
        "served_dimensions": served,
        "ports": ports,
    }


ALL_LINKS = tuple(f"{operand}, {way}" for operand in ("I1", "I2") for way in ("fh", "tl"))
ALL_LINKS += ("O, fh", "O, tl", "O, fl", "O, th")


def hardware(sram_bits: int = SRAM_BITS, sram_operands: tuple[str, ...] = ("I1", "I2", "O")) -> dict[str, Any]:
    """A 4 x 4 array with a register for weights and one for sums, an SRAM and a DRAM."""
    sides = ["D1", "D2"]
    own = [link for link in ALL_LINKS if link.split(",")[0] in sram_operands]
    into = [link for link in own if link.endswith(("fh", "fl"))]
    return {
        "name": "small",
        "operator_types": ["all"],
        "operational_array": {"dimensions": sides, "sizes": [4, 4], "unit_energy": 0.5, "unit_area": 1},
        "memories": {
            "weights": memory(64, 0.1, [], [port("r", "read", 8, "I2, tl"), port("w", "write", 8, "I2, fh")], ["I2"]),
            "sums": memory(
                32,
                0.1,
                [],
                [port("r", "read", 32, "O, tl", "O, th"), port("w", "write", 32, "O, fh", "O, fl")],
                ["O"],
            ),
            "sram": memory(
                sram_bits,
                3.0,
                sides,
                [
                    port("r", "read", 64, *[link for link in own if link not in into]),
                    port("w", "write", 64, *into),
                ],
                list(sram_operands),
            ),
            "dram": memory(10**9, 200.0, sides, [port("rw", "read_write", 32, *ALL_LINKS)], ["I1", "I2", "O"]),
        },
    }


LINKS = {"O": "O", "W": "I2", "I": "I1"}
MAPPING = [
    {"name": "default", "spatial_mapping": {"D1": ["K, 4"], "D2": ["C, 4"]}, "memory_operand_links": LINKS},
    {"name": "@vector", "spatial_mapping": {"D1": ["D, 4"], "D2": ["K, 4"]}, "memory_operand_links": LINKS},
]


def core_of(sram_bits: int = SRAM_BITS, sram_operands: tuple[str, ...] = ("I1", "I2", "O")) -> Core:
    """The small core."""
    return single_core(parse_accelerator(hardware(sram_bits, sram_operands)))


def model(heads: int = 2, key_heads: int = 1, window: int | None = None) -> dict[str, Any]:
    """A tiny model with heads of 4 channels."""
    return {
        "model_type": "mistral" if window else "llama",
        "hidden_size": 4 * heads,
        "intermediate_size": 8,
        "num_attention_heads": heads,
        "num_hidden_layers": 2,
        "num_key_value_heads": key_heads,
        "head_dim": 4,
        "vocab_size": 16,
        "max_position_embeddings": 4096,
        **({"sliding_window": window} if window else {}),
    }


def described(phase: str, tokens: int, context: int = 0, **fields: Any) -> dict[str, Any]:
    """A workload with the tiny model."""
    step = {"phase": phase, "context": context} | ({"tokens": tokens} if phase == "prefill" else {})
    return {"language_model": model(**fields), **step}


def attention_of(document: dict[str, Any]) -> NetworkAttention:
    """The only attention of a workload."""
    found = describe_language_model(document_of(document), "small")
    (one,) = language_model_attentions(found.model, found.step)
    return one


def costs_of(one: NetworkAttention, core: Core, objective: str = "energy", mapping: Any = None) -> AttentionCosts:
    """The costs of an attention on a core."""
    options = LayerOptions(objective=objective, lpf_limit=4)  # type: ignore[arg-type]
    return AttentionCosts(one, core, parse_mapping(MAPPING if mapping is None else mapping), options)


@st.composite
def shapes(draw: st.DrawFn, most: int = 6) -> AttentionShape:
    """Small shapes of attentions, with any masks and heads."""
    queries = draw(st.integers(1, most))
    keys = queries + draw(st.integers(0, most))
    return AttentionShape(
        units=draw(st.integers(1, 3)),
        heads=draw(st.integers(1, 3)),
        queries=queries,
        keys=keys,
        key_width=draw(st.sampled_from([1, 3, 4])),
        value_width=draw(st.sampled_from([2, 4])),
        bits=Bits(8, draw(st.sampled_from([4, 8])), 8, draw(st.sampled_from([8, 16])), None),
        stages=draw(st.sampled_from([("scale",), ("scale", "cap")])),
        is_causal=draw(st.booleans()),
        window=draw(st.sampled_from([None, 1, 2, 5])),
    )


def with_shape(one: NetworkAttention, shape: AttentionShape) -> NetworkAttention:
    """The attention with another shape; its layers in the network stay unchanged."""
    return replace(one, shape=shape)
