"""Option --plan of the verbs that make a run.

The option takes the cuts of the network and the schedule settings from a plan that `tilewright fuse` wrote.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.steps import FIXED_MAPPING, FUSION
from tilewright.cli.options import FILE
from tilewright.pipeline.configuration.arguments import value_text

SCHEMA = "tilewright/fusion"


def plan_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --plan FILE. The plan in the file sets the defaults of other options of the verb."""
    text = (
        f"Plan of `tilewright fuse` (its file {FUSION}). The plan sets the stacks and the settings of the schedule."
        f" Also give the file {FIXED_MAPPING} of the plan as the mapping file."
    )
    declare = click.option("--plan", type=FILE, metavar="FILE", is_eager=True, callback=_take_defaults, help=text)
    return declare(function)


def _take_defaults(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Use values of the plan in a file as defaults of the command's options. Returns the path of the file.

    Raises ArtifactError if `fuse` did not write the file.
    """
    if file is not None:
        plan = read_artifact(file, SCHEMA).payload
        said = {"layer_stacks": plan["layer_stacks"], **plan["settings"]}
        context.default_map = {name: value_text(value) for name, value in said.items()}
    return file
