"""`tilewright translate`: the command, configuration and pipeline that correspond to a script for zigzag-dse or
Stream.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.base.artifacts.files import FilePath
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.terminal import echo_text

if TYPE_CHECKING:
    from tilewright.main_stage.bridge import Translation


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("script", type=FILE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def command(script: Path, arguments: tuple[str, ...], verbose: bool, as_json: bool) -> None:
    """Show the command, configuration and pipeline that correspond to a SCRIPT for zigzag-dse or Stream.

    The script is run, with its ARGUMENTS, up to the point where it would run its stages. Parts without a counterpart
    are named.

    Example: tilewright translate main.py --model resnet18.onnx
    """
    told = translate(script, arguments)
    if as_json:
        echo_json(
            {
                "commands": told.commands(),
                "configuration": told.configuration(),
                "pipeline": told.pipeline,
                "options": told.options,
                "remarks": told.remarks,
            }
        )
        return
    echo_text(told.text())


def translate(script: FilePath, arguments: Sequence[str] = ()) -> "Translation":
    """Commands, configuration and pipeline that correspond to a script for zigzag-dse or Stream, and its parts without
    a counterpart.

    The script is run with its arguments up to the point where it would run its stages. Raises InputError with
    everything that is wrong with the script, its stages or its keywords.
    """
    from tilewright.main_stage.bridge import translated
    from tilewright.main_stage.theirs import stages_of

    found = stages_of(Path(script), arguments)
    return translated(found.list_of_callables, found.kwargs)
