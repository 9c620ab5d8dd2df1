"""`tilewright warm-up`: compile the cost model during set-up."""

import click

from tilewright.cli.options import common_options, echo_json

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


@click.command()
@common_options
def command(verbose: bool, as_json: bool) -> None:
    """Map one tiny layer, which compiles the cost model and keeps it for later runs.

    Example: tilewright warm-up
    """
    from tilewright.api import map_workload

    map_workload([TINY_LAYER], TINY_HARDWARE, [TINY_MAPPING])
    if as_json:
        echo_json({"ready": True})
    else:
        click.echo("ready")
