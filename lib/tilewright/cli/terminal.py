"""Output of the command line: every line and text is printed here, after `tilewright.base.harmless` made it safe."""

import click

from tilewright.base.harmless import terminal, terminal_json, terminal_text


def echo(line: object = "", err: bool = False) -> None:
    """Print one line; names in it are made harmless."""
    click.echo(terminal(line), err=err)


def echo_text(text: str, err: bool = False, nl: bool = False) -> None:
    """Print a text of several lines; with `nl` a newline after it."""
    click.echo(terminal_text(text), err=err, nl=nl)


def echo_json_text(text: str) -> None:
    """Print JSON in a harmless form with the same value."""
    click.echo(terminal_json(text))
