"""Option --plan of the verbs that make a run: cuts and schedule settings from the answer of `tilewright fuse`."""

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
    """Add --plan FILE, whose content is the default of the other options of the verb."""
    text = f"{FUSION} of `tilewright fuse`, for {FIXED_MAPPING} beside it: stacks and settings of the schedule are its."
    declare = click.option("--plan", type=FILE, metavar="FILE", is_eager=True, callback=_take_defaults, help=text)
    return declare(function)


def _take_defaults(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """File of the plan. Take the defaults from the plan. Raises ArtifactError if the file is no answer of `fuse`."""
    if file is not None:
        plan = read_artifact(file, SCHEMA).payload
        said = {"layer_stacks": plan["layer_stacks"], **plan["settings"]}
        context.default_map = {name: value_text(value) for name, value in said.items()}
    return file
