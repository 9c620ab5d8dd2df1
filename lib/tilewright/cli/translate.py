"""`tilewright translate`: command, configuration and pipeline that correspond to a script for zigzag-dse or Stream."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click import UNPROCESSED

from tilewright.base.artifacts.files import FilePath
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Argument, verb

if TYPE_CHECKING:
    from tilewright.main_stage.bridge import Translation


def _show(told: "Translation", as_json: bool) -> None:
    if not as_json:
        echo_text(told.text())
        return
    names = ("pipeline", "options", "remarks")
    parts = {"commands": told.commands(), "configuration": told.configuration()}
    echo_json(parts | {name: getattr(told, name) for name in names})


@verb(
    """Show the command, configuration and pipeline that correspond to a SCRIPT for zigzag-dse or Stream.

    The script is run with the ARGUMENTS, but it is stopped before a stage runs. The output names the parts of the
    script that have no counterpart in tilewright.

    Example: tilewright translate main.py --model resnet18.onnx
    """,
    show=_show,
    settings={"context_settings": {"ignore_unknown_options": True}},
)
def translate(
    script: Annotated[FilePath, ARGUMENT],
    arguments: Annotated[Sequence[str], Argument(type=UNPROCESSED)] = (),
) -> "Translation":
    """Commands, configuration and pipeline that correspond to a script for zigzag-dse or Stream.

    Remarks in the result name the parts of the script without a counterpart. The script is run with the given
    arguments, but it is stopped before a stage runs. Raises InputError with all errors of the script, the stages and
    the keywords.
    """
    from tilewright.main_stage.bridge import translated
    from tilewright.main_stage.theirs import stages_of

    found = stages_of(Path(script), arguments)
    return translated(found.list_of_callables, found.kwargs)
