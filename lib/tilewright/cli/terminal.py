"""Output of the command line: every line and text goes through here, and so through `tilewright.base.harmless`."""

import click

from tilewright.base.harmless import terminal, terminal_json, terminal_text


def echo(line: object = "", err: bool = False) -> None:
    """Say one line, whatever the names in it hold."""
    click.echo(terminal(line), err=err)


def echo_text(text: str, err: bool = False, nl: bool = False) -> None:
    """Say a text of several lines; with `nl` a newline after it."""
    click.echo(terminal_text(text), err=err, nl=nl)


def echo_json_text(text: str) -> None:
    """Say JSON; what a program reads of it is the same value."""
    click.echo(terminal_json(text))
