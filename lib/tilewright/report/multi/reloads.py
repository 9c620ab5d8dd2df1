"""Layers that a tile makes expensive: what of their data comes from the off-chip memory more than once, and why."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.scheduling.energy_terms import CAUSES
from tilewright.scheduling.problem import OUTPUT_OPERAND, Booleans, Integers
from tilewright.scheduling.result import ScheduleArtifact

LEAST_FACTOR = 1.5
"""Data that is loaded less often is not told of."""
CONSTANTS, RESULTS = "constants", "results"
"""Weights and the like, by the layer that reads them; results of a layer, by the layer that makes them."""
STREAMED, COPIED, EVICTED = "streamed", "copied", "evicted"
_WHY = {
    STREAMED: "they do not fit beside the rest, and each tile reads them",
    COPIED: "several cores fetch them",
    EVICTED: "they make room for others, and are fetched again",
}


def reload_rows(artifact: ScheduleArtifact) -> list[dict[str, Any]]:
    """A row for each layer and kind of data that is read from off-chip at least LEAST_FACTOR times, by what that costs.

    `bits` are those of the data, `loaded_bits` what is read off-chip of it, both of `layer`; `cause` is the larger part
    of what is loaded again: streamed (an operand stays off-chip), copied (to several memories), evicted.
    """
    graph = artifact.graph
    layers = len(artifact.names.layer_names)
    is_constant = graph.piece_producer < 0
    layer = artifact.piece_layer
    fetched, copies = _fetched(artifact)
    needed = np.zeros(len(graph.piece_bits), np.bool_)
    needed[artifact.problem.fetch_order[0]] = True
    counts = np.bincount(graph.layer, minlength=layers)
    streams = dict(zip((CONSTANTS, RESULTS), _streamed(artifact, layers), strict=True))
    rows = []
    for data, chosen in ((CONSTANTS, is_constant & needed), (RESULTS, ~is_constant & needed)):
        bits = _by_layer(graph.piece_bits, layer, chosen, layers)
        loads = _by_layer(graph.piece_bits * fetched, layer, chosen, layers)
        once = _by_layer(graph.piece_bits * copies, layer, chosen, layers)
        for number in range(layers):
            loaded = int(loads[number] + streams[data][number])
            if not bits[number] or loaded < LEAST_FACTOR * bits[number]:
                continue
            again = {
                STREAMED: int(streams[data][number]),
                COPIED: int(max(once[number] - bits[number], 0)),
                EVICTED: int(max(loads[number] - once[number], 0)),
            }
            rows.append(
                {
                    "layer": artifact.names.layer_names[number],
                    "data": data,
                    "bits": int(bits[number]),
                    "loaded_bits": loaded,
                    "factor": loaded / int(bits[number]),
                    "tiles": int(counts[number]),
                    "cause": max(again, key=lambda cause: again[cause]),
                }
            )
    return sorted(rows, key=lambda row: row["bits"] - row["loaded_bits"])


def reload_lines(rows: Sequence[dict[str, Any]], most: int) -> list[str]:
    """The rows for people."""
    lines = [
        f"{row['layer']}: its {row['data']} ({row['bits'] / 8192:,.1f} KiB) are loaded {row['factor']:,.1f} times by"
        f" {row['tiles']:,} tiles: {_WHY[row['cause']]}"
        for row in rows[:most]
    ]
    return lines + ([f"and {len(rows) - most} more layers load data again"] if len(rows) > most else [])


def _by_layer(values: Integers, layer: Integers, chosen: Booleans, layers: int) -> Integers:
    found = np.zeros(layers, np.int64)
    np.add.at(found, layer[chosen], values[chosen])
    return found


def _fetched(artifact: ScheduleArtifact) -> tuple[Integers, Integers]:
    """([piece] how often it is read off-chip to be fetched, [piece] by how many memories at least once)."""
    moves, pieces = artifact.schedule.transfers, len(artifact.graph.piece_bits)
    moves = moves[(moves["cause"] == CAUSES.index("off_chip_fetch")) & (moves["broadcast_of"] < 0)]
    memories = len(artifact.system.memory_capacity_bits)
    pairs = np.unique(moves["piece"] * memories + moves["target_memory"])
    return np.bincount(moves["piece"], minlength=pieces), np.bincount(pairs // memories, minlength=pieces)


def _streamed(artifact: ScheduleArtifact, layers: int) -> tuple[Integers, Integers]:
    """([layer] bits of constants that stream to it, [layer] bits of its results that stream to others)."""
    graph, problem = artifact.graph, artifact.problem
    streams = problem.costs.stream_bits[graph.cost_row, artifact.schedule.allocation]
    piece, operand = problem.fetch_order
    cn = problem.need_cn
    streams_here = (operand != OUTPUT_OPERAND) & (streams[cn, operand] > 0)
    cn, piece, operand = cn[streams_here], piece[streams_here], operand[streams_here]
    # A stream is of all pieces that the node needs by the operand, by their sizes.
    key = cn * streams.shape[1] + operand
    total = np.zeros(streams.size, np.int64)
    np.add.at(total, key, graph.piece_bits[piece])
    share = graph.piece_bits[piece] / np.maximum(total[key], 1) * streams.reshape(-1)[key]
    is_constant = graph.piece_producer[piece] < 0
    read, made = np.zeros(layers), np.zeros(layers)
    np.add.at(read, graph.layer[cn[is_constant]], share[is_constant])
    np.add.at(made, artifact.piece_layer[piece[~is_constant]], share[~is_constant])
    return np.rint(read).astype(np.int64), np.rint(made).astype(np.int64)
