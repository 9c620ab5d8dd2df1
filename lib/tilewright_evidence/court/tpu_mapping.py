"""Conversion of matrix products on a TPU into layers, mappings and hardware files of tilewright.

The set of measurements has no mappings. This module maps every product by the same rules:

* The inputs of all tokens stay in the vector memory. The array starts when all inputs have arrived.
* The array keeps a tile of weights until all tokens have passed. The next tile is fetched at the same time.
* The sums of all tokens stay in the vector memory until the last step of the reduction. The outputs then leave the
  memory in 16 bits.

The cost model evaluates the mapping on the hardware file `tpu_v6e.yaml`, which has the times of commands and requests.
"""

from collections.abc import Mapping
from copy import deepcopy
from functools import cache

import yaml
from tilewright.base.units import parse_frequency_mhz
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator

from tilewright_evidence.court.case import DATA
from tilewright_evidence.court.mapped_layer import MappedLayer, YamlTable, product_layer, with_times, without_keys

HARDWARE = DATA / "hardware" / "tpu_v6e.yaml"
DIMENSIONS = ("B", "K", "C")
"""Loop dimensions of a product: tokens, outputs and inputs."""
PRECISION = (("W", 16), ("I", 16), ("O", 32), ("O_final", 16))
"""Pairs (operand, bits of an element). Inputs, weights and final outputs are bf16; sums have 32 bits."""
COMMAND_LATENCY, REQUEST_LATENCY = "command_latency_cycles", "request_latency_cycles"
"""Keys of the hardware file whose numbers are fitted to measurements."""


@cache
def written_document() -> YamlTable:
    """Content of the hardware file `tpu_v6e.yaml`."""
    document: YamlTable = yaml.safe_load(HARDWARE.read_text())
    return document


@cache
def clock_mhz() -> float:
    """Clock frequency in the hardware file, in MHz."""
    return parse_frequency_mhz(written_document()["clock_frequency"])


def written_values() -> dict[str, float]:
    """Values that the hardware file has for the fitted numbers, by name of the number."""
    document = written_document()
    return {
        COMMAND_LATENCY: document["operational_array"][COMMAND_LATENCY],
        REQUEST_LATENCY: document["memories"]["hbm"][REQUEST_LATENCY],
    }


def tpu_document(values: Mapping[str, float] | None = None, *, weights_on_chip: bool = False) -> YamlTable:
    """Hardware file of the TPU. `values` has new values for the fitted numbers of the file, by name of the number.

    If `weights_on_chip` is true, the vector memory is the outermost memory of the weights, because the weights were
    fetched before the product begins.
    """
    document = deepcopy(written_document())
    chosen = written_values() | dict(values or {})
    hbm = document["memories"]["hbm"]
    document["operational_array"][COMMAND_LATENCY] = chosen[COMMAND_LATENCY]
    hbm[REQUEST_LATENCY] = chosen[REQUEST_LATENCY]
    if weights_on_chip:
        hbm["operands"] = [operand for operand in hbm["operands"] if operand != "I2"]
        for port in hbm["ports"]:
            port["allocation"] = [link for link in port["allocation"] if not link.startswith("I2,")]
        for port in document["memories"]["vmem"]["ports"]:
            port["allocation"] = [link for link in port["allocation"] if link != "I2, fh"]
    return document


@cache
def tpu_core(values: tuple[tuple[str, float], ...] = (), *, weights_on_chip: bool = False, alone: bool = False) -> Core:
    """Core in the hardware file that `tpu_document` returns for `values` and `weights_on_chip`. `values` are pairs
    (name of a fitted number, new value). If `alone` is true, the keys of commands and requests are first removed from
    the file (`without_keys`).
    """
    document = tpu_document(dict(values), weights_on_chip=weights_on_chip)
    if values and not alone:
        return with_times(tpu_core(weights_on_chip=weights_on_chip), document)
    return read_accelerator(without_keys(document) if alone else document).cores[0]


@cache
def mapping_of(tokens: int, outputs: int, inputs: int, *, weights_on_chip: bool = False) -> MappedLayer:
    """Mapping of the product of a `tokens` x `inputs` matrix and an `inputs` x `outputs` matrix (the weights). If
    `weights_on_chip` is true, the weights are in the vector memory before the product begins.

    The numbers of outputs and inputs are rounded up, so that all passes over the array have the same size.
    """
    columns, rows, units = written_document()["operational_array"]["sizes"]
    k_passes, k_lanes, k_units = _shared(outputs, columns, units)
    c_passes, c_lanes, _ = _shared(inputs, rows, 1)
    size = {"B": tokens, "K": k_passes * k_lanes * k_units, "C": c_passes * c_lanes}
    layer = product_layer(size, PRECISION)
    sides = (("D1", "K", k_lanes), ("D2", "C", c_lanes), ("D3", "K", k_units))
    unrolling = tuple((side, ((name, lanes),)) for side, name, lanes in sides if lanes > 1)
    loops = {"B": tokens, "C": c_passes, "K": k_passes}
    order = tuple((name, count) for name, count in loops.items() if count > 1)
    names = [name for name, _ in order]
    total, tile = len(names), sum(name == "B" for name in names)
    sums = sum(name in ("B", "C") for name in names)
    weights = (tile, total) if weights_on_chip else (tile, tile, total)
    boundaries = (("O", (sums, total)), ("W", weights), ("I", (total, total)))
    return MappedLayer(layer, unrolling, order, boundaries, tpu_core(weights_on_chip=weights_on_chip, alone=True))


def _shared(size: int, lanes: int, units: int) -> tuple[int, int, int]:
    """Triple (passes, used lanes in each used unit, used units) for a loop of `size` iterations. At most `units` units
    of `lanes` lanes share the iterations evenly. The product of the three numbers is at least `size`.
    """
    passes = -(-size // (lanes * units))
    used = min(units, -(-size // lanes))
    return passes, -(-size // (passes * used)), used
