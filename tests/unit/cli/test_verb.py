"""Commands made from functions: options, types, limits, defaults, and results."""

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner, Result
from tilewright.base.artifacts.files import FilePath
from tilewright.base.parameters import Limits, OneOf
from tilewright.cli.main import VERBS
from tilewright.cli.verb import ARGUMENT, DECLARED, Argument, Help, command_of, verb


def declared(function: Callable[..., Any], **settings: Any) -> click.Command:
    """Return the command of a function, which prints its return value."""
    show = settings.pop("show", lambda found: click.echo(repr(found)))
    verb("Do it.\n\n    Example: tilewright do", show=show, **settings)(function)
    return command_of(__name__)


def said(command: click.Command, *words: str) -> Result:
    """Call a command and return the result."""
    return CliRunner().invoke(command, words)


def sample(**settings: Any) -> click.Command:
    """Return the command of a function with options of all kinds."""

    def sample_verb(
        file: Annotated[FilePath, ARGUMENT],
        output: Annotated[FilePath | None, Help("Where to.")] = None,
        sizes: Annotated[Sequence[int], Limits(least=1), Help("Sizes.", flag="--size")] = (),
        share: Annotated[float, Limits(above=0), Help("How much.")] = 0.5,
        kind: Annotated[Literal["", "a", "b"], Help("Which.")] = "",
        form: Annotated[str, OneOf(("x", "y")), Help("What; default: x.")] = "x",
        is_quick: Annotated[bool, Help("Soon.", flag="--quick")] = False,
        searches: Annotated[bool, Help("Also search.", flag="--search")] = True,
        others: Annotated["Sequence[FilePath]", Help("More.")] = (),
        only_in_python: object = None,
    ) -> tuple[object, ...]:
        """Return all arguments."""
        return file, output, sizes, share, kind, form, is_quick, searches, others, only_in_python

    return declared(sample_verb, **settings)


def test_options_have_the_types_of_the_signature() -> None:
    """Options have the types of the signature: paths, several values, limits, choices, switches; defaults are those of
    Python."""
    command = sample()
    assert said(command, "f").output == f"{(Path('f'), None, (), 0.5, '', 'x', False, True, (), None)!r}\n"
    given = "f -o out --size 1 --size 2 --share 1 --kind a --form y --quick --no-search --others g --others h"
    found = (Path("f"), Path("out"), (1, 2), 1.0, "a", "y", True, False, (Path("g"), Path("h")), None)
    assert said(command, *given.split()).output == f"{found!r}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Missing argument 'FILE'"),
        ("f --size 0", "0 is not in the range x>=1"),
        ("f --share 0", "0.0 is not in the range x>0"),
        ("f --kind c", "'c' is not one of 'a', 'b'"),
        ("f --form z", "'z' is not one of 'x', 'y'"),
        ("f --only-in-python 1", "No such option"),
    ],
)
def test_wrong_values_are_refused(words: str, message: str) -> None:
    """Wrong values are refused with the message of click."""
    result = said(sample(), *words.split())
    assert result.exit_code == 2
    assert message in result.output


def test_help_has_defaults_that_it_does_not_say_itself() -> None:
    """The help shows defaults of options, unless the text has them or they are empty."""
    text = " ".join(said(sample(), "--help").output.split())
    assert "How much. [default: 0.5; x>0]" in text
    assert "What; default: x. -" in text
    assert "--search / --no-search Also search. [default: search]" in text
    assert "Example: tilewright do" in text


def test_python_sees_no_help() -> None:
    """The signature of a function has no marks for the command line."""

    def plain(file: FilePath, others: "Sequence[FilePath]" = (), *, size: int = 1) -> None:
        """Do nothing."""

    def marked(
        file: Annotated[FilePath, ARGUMENT],
        others: Annotated["Sequence[FilePath]", Help("More.")] = (),
        *,
        size: Annotated[int, Limits(least=1), Help("Size.")] = 1,
    ) -> None:
        """Do nothing."""

    declared(marked)
    assert inspect.signature(marked) == inspect.signature(plain)


def test_result_is_made_and_shown_by_what_they_take(capsys: pytest.CaptureFixture[str]) -> None:
    """`run` replaces the function of a command, `show` gives its exit code, and both get arguments by name."""
    taken: dict[str, Any] = {}

    def run(size: int, show_progress: bool) -> str:
        taken["run"] = size, show_progress
        return "rich"

    def show(found: str, files: Sequence[Path], as_json: bool) -> int:
        taken["show"] = found, files, as_json
        return 3

    def poor(
        files: Annotated[Sequence[FilePath], Argument(is_required=True)], size: Annotated[int, Help("S.")]
    ) -> None:
        """Fail, because the command never calls it."""
        raise AssertionError

    command = declared(poor, run=run, show=show)
    assert command.main(["f", "g", "--size", "4", "--json"], standalone_mode=False) == 3
    assert taken == {"run": (4, False), "show": ("rich", (Path("f"), Path("g")), True)}
    assert said(command, "--size", "4").exit_code == 2


def test_every_verb_gives_what_is_asked_for() -> None:
    """The functions `run` and `show` of a verb have only arguments of the verb."""
    for module, _ in VERBS.values():
        import_module(module)
    given = {"verbose", "as_json", "tell", "show_progress"}
    declared_ones = {one for name, one in DECLARED.items() if name != __name__}
    assert len(declared_ones) > 30
    for one in declared_ones:
        for function, first in ((one.run, 0), (one.show, 1)):
            asked = [*inspect.signature(function).parameters][first:]
            assert {*asked} <= {*one.signature.parameters} | given, one.function


def test_every_option_reaches_a_function() -> None:
    """Each option of a verb reaches a function, except --paper, which the verb reads."""
    for module, _ in VERBS.values():
        import_module(module)
    for one in {one for name, one in DECLARED.items() if name != __name__}:
        names = {str(option.name) for option in one.command().params} & set(one.signature.parameters)
        taken = {name for function in (one.run, one.show) for name in inspect.signature(function).parameters}
        assert names - taken <= {"paper"}, one.function


def test_options_that_are_named_come_first() -> None:
    """Named options come first, in the given order."""
    names = [one.name for one in sample(order="share sizes").params]
    assert names[:4] == ["share", "sizes", "file", "output"]
