"""Output of the command line.

Each function makes a text safe with `tilewright.base.harmless` before it prints it.
"""

import click

from tilewright.base.harmless import terminal, terminal_json, terminal_text


def echo(line: object = "", err: bool = False) -> None:
    """Print one line. Control characters in the line, for example from file names, are made harmless."""
    click.echo(terminal(line), err=err)


def echo_text(text: str, err: bool = False, nl: bool = False) -> None:
    """Print a text of several lines. With `nl`, a newline is added at the end."""
    click.echo(terminal_text(text), err=err, nl=nl)


def echo_json_text(text: str) -> None:
    """Print a JSON text. Control characters are escaped, so that the text is harmless and has the same value."""
    click.echo(terminal_json(text))
