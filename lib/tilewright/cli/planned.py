"""--plan of the verbs that make a run: how the network is cut and scheduled, from the answer of `tilewright fuse`."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import click

from tilewright.artifacts.envelope import read_artifact
from tilewright.cli.options import FILE
from tilewright.configuration.arguments import arguments_of, flag_of
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.parameters import Parameters, parameters_of
from tilewright.steps import FIXED_MAPPING, FUSION

SCHEMA = "tilewright/fusion"
_FLAG = "--plan"


class PlannedCommand(click.Command):
    """A verb that takes its options from a plan, where one is given; those that stand on the command line go before."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words of the plan first, so that others replace them."""
        file = next((args[number + 1] for number, word in enumerate(args[:-1]) if word == _FLAG), None)
        own = {flag for parameter in self.params for flag in parameter.opts}
        return super().parse_args(ctx, args if file is None else [*plan_words(Path(file), own), *args])


def plan_words(file: Path, flags: Collection[str]) -> list[str]:
    """Those of the options that a plan decides. Raises ArtifactError where the file is no answer of `fuse`."""
    from tilewright.scheduling.options import ScheduleSettings  # `cns` takes no settings

    plan = read_artifact(file, SCHEMA).payload
    values: dict[type[Parameters], dict[str, Any]] = {
        TilingOptions: {"layer_stacks": plan["layer_stacks"]},
        ScheduleSettings: plan["settings"],
    }
    return [
        word
        for kind, found in values.items()
        if all(flag_of(one) in flags for one in parameters_of(kind))
        for word in arguments_of(kind, found)
    ]


def plan_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """--plan FILE; what it says is in the other options by then."""
    text = f"{FUSION} of `tilewright fuse`, for {FIXED_MAPPING} beside it: stacks and settings of the schedule are its."
    return click.option(_FLAG, type=FILE, metavar="FILE", expose_value=False, help=text)(function)
