"""`tilewright warm-up`: compilation of the kernels of all verbs before their first use."""

from typing import TYPE_CHECKING

from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo
from tilewright.cli.verb import verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from tilewright.base.compiled import Kernel
    from tilewright.hardware.system import MultiCoreAccelerator

TINY_HARDWARE = {
    "name": "tiny",
    "memories": {
        "register": {
            "size": 16,
            "r_cost": 1,
            "w_cost": 1,
            "area": 0,
            "latency": 1,
            "operands": ["I2"],
            "ports": [
                {"name": "r_port_1", "type": "read", "bandwidth_min": 8, "bandwidth_max": 8, "allocation": ["I2, tl"]},
                {"name": "w_port_1", "type": "write", "bandwidth_min": 8, "bandwidth_max": 8, "allocation": ["I2, fh"]},
            ],
            "served_dimensions": [],
        },
        "memory": {
            "size": 1000000,
            "r_cost": 10,
            "w_cost": 10,
            "area": 0,
            "latency": 1,
            "operands": ["I1", "I2", "O"],
            "ports": [
                {
                    "name": "rw_port_1",
                    "type": "read_write",
                    "bandwidth_min": 8,
                    "bandwidth_max": 64,
                    "allocation": [f"{o}, {d}" for o in ("I1", "I2") for d in ("tl", "fh")]
                    + [f"O, {d}" for d in ("tl", "fl", "th", "fh")],
                }
            ],
            "served_dimensions": ["D1"],
        },
    },
    "operational_array": {"unit_energy": 1, "unit_area": 1, "dimensions": ["D1"], "sizes": [2]},
}
TINY_LAYER = {
    "id": 0,
    "name": "tiny",
    "operator_type": "Gemm",
    "equation": "O[b][k]+=W[k][c]*I[b][c]",
    "dimension_relations": [],
    "loop_dims": ["B", "K", "C"],
    "loop_sizes": [2, 4, 4],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    "operand_source": {"W": 0, "I": 0},
}
TINY_MAPPING = {"name": "default", "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}


def _show(_: None, as_json: bool) -> None:
    echo_json({"ready": True}) if as_json else echo("ready")


@verb(
    """Compile the kernels of all searches and schedules, and keep the compiled code for later runs.

    Example: tilewright warm-up
    """,
    show=_show,
)
def warm_up() -> None:
    """Compile every kernel, so that later runs find the compiled code. The function maps a tiny layer on one core and
    on two cores, which calls all kernels.
    """
    from tilewright.api import run_multi_core
    from tilewright.base.compiled import native_function
    from tilewright.cli.map import map_workload

    map_workload([TINY_LAYER], TINY_HARDWARE, [TINY_MAPPING])
    run_multi_core([TINY_LAYER], _two_cores(), [TINY_MAPPING])
    for entry, records in entry_points():
        native_function(entry, records)


def entry_points() -> "Iterator[tuple[Kernel, tuple[np.dtype, ...]]]":
    """Kernels that Python code calls, each with the types of its arguments."""
    from tilewright.mapping.spatial_kernel import COMBINATIONS, fill_best_combinations
    from tilewright.multicore.scheduling import simulate
    from tilewright.multicore.scheduling.bounds import paths
    from tilewright.multicore.scheduling.bounds.paths_kernel import cns_around, longest_paths
    from tilewright.multicore.scheduling.simulation_kernel import run
    from tilewright.peers.defines import tile_costs
    from tilewright.peers.defines.accesses_kernel import find_least_energy
    from tilewright.search import best_order, blocks, loma, priced_orders, salsa
    from tilewright.search.best_order_kernel import find_best
    from tilewright.search.exact import rounds
    from tilewright.search.figures_kernel import price_orders
    from tilewright.search.loma_kernel import cost_block, fill_block
    from tilewright.search.moved_data_kernel import forget
    from tilewright.search.salsa_kernel import anneal

    yield fill_best_combinations, (COMBINATIONS,)
    yield fill_block, loma.RECORDS
    yield cost_block, blocks.RECORDS
    yield anneal, salsa.RECORDS
    yield from ((entry, rounds.ENTRY_RECORDS) for entry in rounds.ENTRIES)
    yield find_best, best_order.RECORDS
    yield forget, priced_orders.FORGET_RECORDS
    yield price_orders, priced_orders.RECORDS
    yield find_least_energy, tile_costs.RECORDS
    yield from ((entry, paths.RECORDS) for entry in (cns_around, longest_paths))
    yield run, simulate.RECORDS


def _two_cores() -> "MultiCoreAccelerator":
    """Accelerator with three cores on a bus: two cores of the tiny hardware, and an off-chip memory as third core."""
    from tilewright.hardware.system import OFFCHIP, CorePlace, Link, MultiCoreAccelerator, all_pairs
    from tilewright.hardware.yaml_reader import read_accelerator

    core = read_accelerator(TINY_HARDWARE).cores[0]
    places = (CorePlace(0, "tiny"), CorePlace(1, "tiny"), CorePlace(2, "tiny", OFFCHIP, is_router=False))
    bus = Link("bus", "bus", all_pairs((0, 1, 2)), 64, 1.0)
    return MultiCoreAccelerator("tiny", (core, core, core), places, (bus,))
