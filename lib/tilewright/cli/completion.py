"""`tilewright completion`: shell completion of verbs, options, their values and files."""

from typing import Annotated, Literal, get_args

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, verb

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = get_args(Shell)


def _show(text: str, as_json: bool) -> None:
    echo_json(text) if as_json else echo_text(text)


@verb(
    """Print a script that lets SHELL complete verbs, options, values of options, and file names with the tab key.

    For bash, add this line to ~/.bashrc: eval "$(tilewright completion bash)". For zsh, add eval "$(tilewright
    completion zsh)" to ~/.zshrc, below compinit. For fish, run once: tilewright completion fish >
    ~/.config/fish/completions/tilewright.fish

    Example: tilewright completion bash
    """,
    show=_show,
)
def completion(shell: Annotated[Shell, ARGUMENT]) -> str:
    """Script that adds completion of the command line to a shell. Raises InputError for an unknown shell."""
    from click.shell_completion import get_completion_class

    from tilewright.cli.main import COMPLETION_VARIABLE, PROGRAM, cli

    if shell not in SHELLS:
        allowed = ", ".join(SHELLS)
        raise InputError([Problem("no such shell", "", 0, "shell", repr(shell), allowed, nearest_name(shell, SHELLS))])
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, PROGRAM, COMPLETION_VARIABLE)
    return str(script.source_template % script.source_vars()).strip() + "\n"
