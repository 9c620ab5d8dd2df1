"""Flags in messages: a message about the parameter `latency_slack` names `--latency-slack` on the command line.

Code that checks a parameter does not know who gave the value. A message therefore has the name of the parameter, which
is also the keyword of the Python function and the key of a configuration. The command line replaces the name by the
flag of the option, when the command prints the message. The following names are replaced if the verb has such an
option:

* the path of a problem without a file, unless the path is a `Label`; also a path of the class `OptionPath`;
* in the text of a problem without a file, a name with an underscore, and a name in backticks;
* in every text, a name after the word "option", as in "the option front".

Names in quotes stay as they are. The keys of an input file have a file, and also stay as they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import click

from tilewright.base.errors import InputError, Label, OptionPath, Problem, Unused


class Flags(NamedTuple):
    """Flags of the options of a verb."""

    of: Mapping[str, str] = {}
    """Flag of each option, by name of the parameter."""
    off: Mapping[str, str] = {}
    """Flag --no-... of each switch that the user turned off with this flag, by name of the parameter."""


_FLAGS = "tilewright.flags"
"""Key of the click context. Its value is the table of the flags of the running verb."""
_HEAD = re.compile(r"([A-Za-z]\w*)(|[.\[].*)", re.DOTALL)
"""Pattern of a path: the name of a parameter, and the place in the value of the parameter."""
_TABLE = re.compile(r"(\w+): (.+): (SIZE|\[SIZE, \.\.\.\]|then \| else)")
"""Pattern of an option whose value is a table with one key, as messages on ONNX files name allowed values."""
_QUOTED = re.compile(r"((?<!\w)'[^']*'(?!\w)|\"[^\"]*\")")
_CODE = re.compile(r"`([A-Za-z]\w*)(?:: ([^`]*))?`")
"""Pattern of a name, or of a name with a value, in backticks."""
_NAME = re.compile(r"(\boptions? )?(?<![\w.:/\\`-])([A-Za-z]\w*)(?![\w/\\`-]|\.\w)(: (?=\S))?")
"""Pattern of a word that can be the name of a parameter, with "option" before the word and a colon after the word."""


def flags_of(command: click.Command, words: Sequence[str] = ()) -> Flags:
    """Flags of the options of a command, or of all commands of a group. `words` are the words that the user typed."""
    parts = command.commands.values() if isinstance(command, click.Group) else ()
    options = [one for part in (command, *parts) for one in part.params if isinstance(one, click.Option)]
    return Flags(
        {str(one.name): one.opts[0] for one in options},
        {str(one.name): flag for one in options for flag in one.secondary_opts if flag in words},
    )


def keep_flags(context: click.Context, flags: Flags) -> None:
    """Store the flags of the running verb in the context of the verb."""
    context.meta[_FLAGS] = flags


def kept_flags() -> Flags:
    """Flags of the running verb. There are none outside of the command line, and none in a job of the pipeline, whose
    options come from a configuration.
    """
    context = click.get_current_context(silent=True)
    return Flags() if context is None else context.meta.get(_FLAGS, Flags())


def error_in_flags(error: InputError, flags: Flags) -> InputError:
    """Error in which the problems name flags. An error of a subclass of InputError stays unchanged."""
    if type(error) is not InputError or not flags.of:
        return error
    return InputError([in_flags(problem, flags) for problem in error.problems])


def notice_in_flags(notice: str, flags: Flags) -> str:
    """Notice that names flags. A notice of a class other than `str` and `Unused` stays unchanged."""
    if isinstance(notice, Unused):
        return Unused(in_flags(notice.problem, flags))
    return _text(notice, flags, only_after_option=True) if type(notice) is str else notice


def text_in_flags(text: str) -> str:
    """Text of a result, with flags of the running verb in place of parameters after the word "option"."""
    return _text(text, kept_flags(), only_after_option=True)


def in_flags(problem: Problem, flags: Flags) -> Problem:
    """Problem that names flags in place of parameters."""
    path, is_name, is_about_part = problem.path, isinstance(problem.path, Label), False
    if not is_name and (not problem.file or isinstance(path, OptionPath)):
        path, is_about_part = _path(path, flags)
    only = bool(problem.file) or is_name or is_about_part
    return replace(
        problem,
        path=path,
        message=_text(problem.message, flags, only),
        allowed=_pair(problem.allowed, flags) or _text(problem.allowed, flags, only, has_values=True),
    )


def _path(path: str, flags: Flags) -> tuple[str, bool]:
    """Pair (path with a flag in place of a parameter, true if the path is a key in the value of the parameter)."""
    found = _HEAD.fullmatch(path)
    if found is None or found[1] not in flags.of:
        return path, False
    flag = flags.off.get(found[1]) or flags.of[found[1]]
    # `--bits Conv.weights`, but `--layer-stacks[0]`
    return flag + (f" {found[2][1:]}" if found[2].startswith(".") else found[2]), "." in found[2]


def _pair(allowed: str, flags: Flags) -> str:
    """Option with a pair of a name and a value, such as `--dim "sequence=SIZE"` for `dims: sequence: SIZE`. '' if
    `allowed` is not such a table with one key.
    """
    found = _TABLE.fullmatch(allowed)
    if found is None or found[1] not in flags.of:
        return ""
    return f'{flags.of[found[1]]} "{found[2]}={found[3].strip("[]").replace(" ", "")}"'


def _text(text: str, flags: Flags, only_after_option: bool, has_values: bool = False) -> str:
    """Text with flags in place of parameters. If `has_values` is true, `name: value` becomes `--name value`."""

    def code(found: re.Match[str]) -> str:
        if found[1] not in flags.of:
            return found[0]
        flag = flags.of[found[1]]
        return flag if found[2] is None else f"`{flag} {found[2]}`"

    def word(found: re.Match[str]) -> str:
        before, name, colon = found[1] or "", found[2], found[3] or ""
        if name not in flags.of or not (before or ("_" in name and not only_after_option)):
            return found[0]
        return before + flags.of[name] + (" " if colon and has_values else colon)

    def replaced(part: str) -> str:
        return _NAME.sub(word, part if only_after_option else _CODE.sub(code, part))

    parts = _QUOTED.split(text)
    return "".join(part if place % 2 else replaced(part) for place, part in enumerate(parts))
