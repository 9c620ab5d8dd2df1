"""What verbs of the multi-core flow read: descriptions, the CN graph and the cost tables of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tilewright.cli.options import FILE
from tilewright.steps import CN_GRAPH, cost_table

if TYPE_CHECKING:
    from tilewright.stages.multi.items import CostedCnProblem

Function = TypeVar("Function", bound=Callable[..., Any])


def run_inputs(function: Function) -> Function:
    """--hardware, --workload, --mapping, --cns and --costs."""
    costs = click.option(
        "--costs", required=True, type=FILE, metavar="FOLDER", help="Folder with a cost table for each core."
    )
    cns = click.option("--cns", required=True, type=FILE, metavar="FOLDER", help="Folder with the CN graph.")
    return system_descriptions(cns(costs(function)))


def system_descriptions(function: Function) -> Function:
    """--hardware, --workload and --mapping."""
    for option in (
        click.option("--mapping", required=True, type=FILE, help="Mapping file or artifact."),
        click.option("--workload", required=True, type=FILE, help="ONNX or YAML file, or artifact."),
        click.option(
            "--hardware", required=True, type=FILE, help="File or artifact of an accelerator of several cores."
        ),
    ):
        function = option(function)
    return function


def input_digests(inputs: "CostedCnProblem", cns: Path, costs: Path) -> dict[str, str]:
    """Digests of what a schedule is made of, for provenance."""
    from tilewright.artifacts.codec import encode
    from tilewright.artifacts.digests import content_digest
    from tilewright.artifacts.envelope import read_artifact

    given = inputs.descriptions
    return {
        "hardware": content_digest(encode(given.accelerator)),
        "workload": content_digest(encode(given.workload)),
        "mapping": content_digest(encode(given.mapping)),
        "cn_graph": read_artifact(cns / CN_GRAPH).digest,
        **{f"cost/{name}": read_artifact(cost_table(costs, name)).digest for name in inputs.costs},
    }
