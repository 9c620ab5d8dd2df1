"""Data that tiles of a layer load again, compared with counts of single transfers and streams."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.multicore.scheduling.energy_ledger import CAUSES
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND
from tilewright.results.multi.summary import LAYER_BY_LAYER, LEAST_FACTOR, baseline_rows, reload_lines, reload_rows

from tests.unit.multi_core.runs import chain, core, off_chip, write_accelerator
from tests.unit.plans.cases import random_case

LINES = [{"name": "default", "intra_core_tiling": ["OY, all"]}]


def counted(artifact: Any) -> dict[tuple[str, str], tuple[int, float]]:
    """(layer, kind of data) -> (bits, bits that are read off-chip), counted piece by piece."""
    graph, problem = artifact.graph, artifact.problem
    piece_of_need = problem.fetch_order[0].tolist()
    readers = defaultdict(list)
    for cn, piece in zip(problem.need_cn.tolist(), piece_of_need, strict=True):
        readers[piece].append(cn)

    def owner(piece: int) -> tuple[str, str]:
        producer = int(graph.piece_producer[piece])
        layer = int(graph.layer[producer]) if producer >= 0 else int(graph.layer[min(readers[piece])])
        return artifact.names.layer_names[layer], "constants" if producer < 0 else "results"

    bits: dict[tuple[str, str], int] = defaultdict(int)
    loaded: dict[tuple[str, str], float] = defaultdict(float)
    for piece in readers:
        bits[owner(piece)] += int(graph.piece_bits[piece])
    for move in artifact.schedule.transfers:
        if CAUSES[move["cause"]] == "off_chip_fetch" and move["broadcast_of"] < 0:
            loaded[owner(int(move["piece"]))] += int(graph.piece_bits[move["piece"]])
    needs = list(zip(problem.need_cn.tolist(), piece_of_need, problem.fetch_order[1].tolist(), strict=True))
    for cn, row in enumerate(graph.cost_row.tolist()):
        streams = problem.costs.stream_bits[row, artifact.schedule.allocation[cn]]
        for operand in range(len(streams)):
            pieces = [piece for reader, piece, its in needs if (reader, its) == (cn, operand)]
            total = sum(int(graph.piece_bits[piece]) for piece in pieces)
            if operand == OUTPUT_OPERAND or not total:
                continue
            for piece in pieces:
                name, _ = owner(piece)
                if graph.piece_producer[piece] < 0:
                    name = artifact.names.layer_names[graph.layer[cn]]
                key = (name, owner(piece)[1])
                loaded[key] += int(streams[operand]) * int(graph.piece_bits[piece]) / total
    return {key: (bits[key], loaded[key]) for key in bits}


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_rows_are_what_transfers_and_streams_say(seed: int, tmp_path: Path) -> None:
    """The table of reloads equals a count of transfers, piece by piece, on random systems with small memories."""
    network, hardware = random_case(seed, tmp_path)
    found = tilewright.run_multi_core(network, hardware, LINES, lpf_limit=4, nb_ga_generations=1)
    rows = {(row["layer"], row["data"]): row for row in reload_rows(found.artifact)}
    plain = {key: one for key, one in counted(found.artifact).items() if one[1] >= LEAST_FACTOR * one[0] + 1}
    assert set(plain) <= set(rows)
    for key, row in rows.items():
        bits, loaded = counted(found.artifact)[key]
        assert row["bits"] == bits
        assert row["loaded_bits"] == pytest.approx(loaded, abs=1)
        assert row["factor"] == row["loaded_bits"] / row["bits"]


def test_weights_that_do_not_fit_are_told(tmp_path: Path) -> None:
    """Weights that do not fit are streamed by each tile, line by line, and reported; weights that fit are not."""
    messages = []
    for size in ("128 B", "8 KiB"):
        cores = {0: core("one", 4, size)}
        hardware = write_accelerator(tmp_path / size, {"cores": cores, "offchip": off_chip(), "links": []})
        found = tilewright.run_multi_core(
            chain(tmp_path),
            hardware,
            LINES,
            lpf_limit=4,
            layer_stacks=[[0, 1, 2]],
            scheduler_candidate_selection="memory",
        )
        rows = [row for row in found.summary["reloads"] if row["data"] == "constants"]
        messages.append(reload_lines(rows, 2))
    assert messages[1] == []
    assert "its constants (400 B) are loaded 4.8 times by 8 tiles: they do not fit" in messages[0][0]
    assert messages[0][2] == "data of 1 more layer are also loaded again"


@pytest.mark.parametrize(("objective", "expected"), [("latency", 200), ("energy", 500), ("EDP", 200)])
def test_factors_are_over_the_best_baseline_that_is_known(objective: str, expected: int) -> None:
    """Speedups and gaps compare with the better of two layer-by-layer runs: the run's own and the search's, by the
    objective.
    """

    def figures(latency_cycles: int, energy_pj: float) -> dict[str, Any]:
        bound = {"latency_cycles": 50, "energy_pj": 1.0}
        own = {"latency_cycles": latency_cycles, "energy_pj": energy_pj, "lower_bound": bound}
        return {**own, "energy_parts_pj": {}, "objective": objective}

    companion, planned = figures(500, 5.0), figures(200, 6.0)
    for given in ((companion, planned), (planned, companion)):
        rows = {row["name"]: row for row in baseline_rows(figures(100, 4.0), given[0], [], given[1])}
        assert rows[LAYER_BY_LAYER]["latency_cycles"] == expected
        assert rows[LAYER_BY_LAYER]["speedup"] == expected / 100
        assert rows[LAYER_BY_LAYER]["gap"] == 1 - 50 / expected
    rows = {row["name"]: row for row in baseline_rows(figures(100, 4.0), companion, [])}
    assert rows[LAYER_BY_LAYER]["speedup"] == 5
