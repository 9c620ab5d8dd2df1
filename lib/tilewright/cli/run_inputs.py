"""What verbs of the multi-core flow read: descriptions, the CN graph and the cost tables of a run."""

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tilewright.artifacts.files import FilePath
from tilewright.cli.options import FILE
from tilewright.errors import InputError, Problem
from tilewright.steps import cost_table
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.multi.items import CnProblem, CostedCnProblem

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


def given_descriptions(
    made: object,
    hardware: "AcceleratorSource | None",
    workload: "WorkloadSource | None",
    mapping: "MappingSource | None",
    network_options: NetworkOptions | None,
) -> "Descriptions | None":
    """The descriptions beside a folder of what was made of them; None beside that in memory, which has its own.

    Raises InputError where one is missing, or has no use.
    """
    from tilewright.stages.descriptions import Descriptions

    given: dict[str, object] = {"hardware": hardware, "workload": workload, "mapping": mapping}
    if isinstance(made, str | PathLike):
        message = f"is needed, beside {os.fspath(made)}"
        problems = [Problem(message, path=name) for name, one in given.items() if one is None]
    else:
        given["network_options"] = network_options
        message = f"has no use beside a {type(made).__name__} in memory, which has it"
        problems = [Problem(message, path=name) for name, one in given.items() if one is not None]
    if problems:
        raise InputError(problems)
    if not isinstance(made, str | PathLike):
        return None
    return Descriptions(hardware, workload, mapping, network_options or NetworkOptions())


def descriptions_of_run(
    cns: "FilePath | CnProblem | None", costs: "FilePath | CostedCnProblem", *given: Any
) -> "Descriptions | None":
    """The same beside the folders of a run, of which the CNs, or all, may be in memory."""
    if isinstance(costs, str | PathLike):
        if cns is None:
            raise InputError([Problem(f"is needed, beside {os.fspath(costs)}", path="cns")])
        return given_descriptions(cns, *given)
    if cns is not None:
        raise InputError([Problem(f"has no use beside a {type(costs).__name__} in memory, which has it", path="cns")])
    return given_descriptions(costs, *given)


def input_digests(
    inputs: "CostedCnProblem", cns: "FilePath | CnProblem | None", costs: "FilePath | CostedCnProblem"
) -> dict[str, str]:
    """Digests of what a schedule is made of, for provenance; what is in memory has those of its artifacts."""
    from tilewright.artifacts.codec import encode
    from tilewright.artifacts.digests import content_digest
    from tilewright.artifacts.envelope import read_artifact
    from tilewright.scheduling.core_costs import core_costs_digest
    from tilewright.stages.multi.inputs import graph_digest

    given = inputs.descriptions
    folder = Path(costs) if isinstance(costs, str | PathLike) else None
    return {
        "hardware": content_digest(encode(given.accelerator)),
        "workload": content_digest(encode(given.workload)),
        "mapping": content_digest(encode(given.mapping)),
        "cn_graph": graph_digest(cns, inputs.graph),
        **{
            f"cost/{name}": read_artifact(cost_table(folder, name)).digest if folder else core_costs_digest(rows)
            for name, rows in inputs.costs.items()
        },
    }
