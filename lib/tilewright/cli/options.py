"""Options and output functions that verbs share."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter as Keyword
from inspect import signature
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import click

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.artifacts.files import FilePath, existing_file
from tilewright.base.errors import Caution, InputError, KeyPath, Problem, Unused
from tilewright.base.harmless import terminal_lines
from tilewright.base.noted_files import FONT_FILES, FONTS, trust_as_noted
from tilewright.base.remarks import folded
from tilewright.base.report_files import FIGURES, TABLES
from tilewright.base.units import LARGEST_WHOLE_NUMBER
from tilewright.base.unused import notice_lines, refuse_unused, unused_in, unused_option
from tilewright.cli.flags import kept_flags, notice_in_flags
from tilewright.cli.terminal import echo, echo_json_text, echo_text
from tilewright.workload.network_options import ASSUMED, PRECISIONS, NetworkOptions

if TYPE_CHECKING:
    from tilewright.base.yamlfile import YamlDocument

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
T = TypeVar("T")
DEFAULT_STORE = Path("results/.store")
FILE = click.Path(path_type=Path)
CHECKOUT = Path(__file__).resolve().parents[3]
CACHES = CHECKOUT / ".cache"


def common_options(function: Function) -> Function:
    """Add -v and --json to a command.

    With -v, `main` prints tracebacks. A verb that prints more with -v takes the argument `verbose`.
    """
    function = click.option("-v", "--verbose", is_flag=True, help="Print more details, and the traceback of an error.")(
        function
    )
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead of text.")(function)


def network_options(function: Function) -> Callable[..., Any]:
    """Add --dim, --input-shape, --branch, --precision, --bits and --zeros. The command gets all their values in the
    argument `network_options`."""

    @wraps(function)
    def with_network_options(*args: Any, **values: Any) -> Any:
        texts = (values.pop(name) for name in ("dims", "input_shapes", "branches", "precision", "bits", "zeros"))
        return function(*args, network_options=parse_network_options(*texts), **values)

    dim = (
        "Size of a dynamic ONNX dimension, named by its symbol (sequence=128) or by a tensor and an axis"
        " (input_ids[1]=128). A pattern (*.height=640) names several dimensions. The size 0 means an empty cache."
        " The option can be given several times."
    )
    shape = "Shape of an input of an ONNX network. The option can be given several times."
    branch = (
        "Branch to take for an If operator whose condition is only known at run time. The name * means all such If"
        " operators. The option can be given several times."
    )
    precision = "Bits of floating-point ONNX tensors: 8 bits (assumed), or the bits of the file (file)."
    bits = (
        "Bits of weights (constants), activations (inputs and final outputs, O_final) and partial (partial sums, O)"
        " of an ONNX network. `Conv.weights=4` sets the bits for one operator type or one operator. The option can be"
        " given several times."
    )
    zeros = (
        "Share of zeros, from 0 to 1, of weights (constants), activations (inputs) and outputs (final outputs) of an"
        " ONNX network, for hardware files with zero_gating or run_length. `conv1.activations=0.4` sets the share for"
        " one operator type or one operator. The option can be given several times."
    )
    for option in (
        click.option("--zeros", multiple=True, metavar="NAME=SHARE,...", help=zeros),
        click.option(
            "--precision",
            default=ASSUMED,
            show_default=True,
            metavar="|".join(PRECISIONS),
            help=precision,
            shell_complete=lambda ctx, option, begun: [name for name in PRECISIONS if name.startswith(begun)],
        ),
        click.option("--bits", multiple=True, metavar="NAME=BITS,...", help=bits),
        click.option("--branch", "branches", multiple=True, metavar="NODE=then|else", help=branch),
        click.option("--input-shape", "input_shapes", multiple=True, metavar="NAME=1,3,224,224", help=shape),
        click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help=dim),
    ):
        with_network_options = option(with_network_options)
    return with_network_options


def network_keywords(function: Callable[..., Result]) -> Callable[..., Result]:
    """Add `dims`, `input_shapes`, `branches`, `precision`, `bits` and `zeros` to a function that takes
    `network_options`.

    Python callers can give all of them except `precision` as dicts: `dims={"sequence": 128}`.
    """
    own = signature(function).parameters

    @wraps(function)
    def with_network_options(*args: Any, **values: Any) -> Result:
        given = {name: values.pop(name) for name in NetworkOptions._fields if values.get(name) is not None}
        if given:
            read = {name: _table(name, value) for name, value in given.items()}
            chosen = (values.get("network_options") or NetworkOptions())._replace(**read)
            chosen.check()
            values["network_options"] = chosen
        return function(*args, **{name: value for name, value in values.items() if name not in NetworkOptions._fields})

    keywords = [Keyword(name, Keyword.KEYWORD_ONLY, default=None) for name in NetworkOptions._fields]
    return of_signature(with_network_options, [*own.values(), *keywords])


def _table(name: str, value: Any) -> Any:
    """Value of the network option `name`: pairs (key, value) of a table. The value of `precision` is not a table and is
    returned unchanged. Raises InputError if the value of another option is not a table.
    """
    if name == "precision":
        return value
    try:
        pairs = list(value.items() if isinstance(value, Mapping) else value)
        return tuple((key, tuple(one) if isinstance(one, list) else one) for key, one in pairs)
    except (TypeError, ValueError):
        allowed = "a table from names"
        raise InputError([Problem("wrong kind of value", path=name, value=repr(value), allowed=allowed)]) from None


def of_signature(function: Callable[..., Result], keywords: list[Keyword]) -> Callable[..., Result]:
    """Give a function a signature with the parameters `keywords`; keyword-only parameters come last. Returns the same
    function.
    """
    by_position = [one for one in keywords if one.kind is not one.KEYWORD_ONLY]
    named = [one for one in keywords if one.kind is one.KEYWORD_ONLY]
    function.__signature__ = signature(function).replace(parameters=[*by_position, *named])  # type: ignore[attr-defined]
    return function


def store_options(function: Function) -> Callable[..., Any]:
    """Add --jobs, --store and --no-store, for verbs that search."""

    @wraps(function)
    def with_store(*args: Any, **values: Any) -> Any:
        notices = overruled_store(values["store"], values["no_store"])
        refuse_unused(notices, values.get("strict", False))
        echo_notices(notices)
        return function(*args, **values)

    for option in (
        click.option("--no-store", is_flag=True, help="Do not read or write stored results. The output is the same."),
        click.option(
            "--store",
            type=FILE,
            default=DEFAULT_STORE,
            show_default=True,
            help="Folder of stored results of earlier runs.",
        ),
    ):
        with_store = option(with_store)
    return jobs_option(with_store)


def jobs_option(function: Function) -> Function:
    """Add --jobs."""
    text = "Number of processes that work at the same time. The results do not depend on this number."
    return click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help=text)(function)


def overruled_store(store: Path, no_store: bool) -> list[Unused]:
    """Notice that --store has no effect, if --no-store is also given; otherwise []."""
    is_overruled = no_store and store != DEFAULT_STORE
    return [unused_option("store", "has no effect with `no_store`", str(store))] if is_overruled else []


def pipeline_option(function: Function) -> Function:
    """Add --pipeline. Its value is a file or a text."""
    text = (
        "Stages of the pipeline: a YAML or JSON file, or JSON text. It has a list of stages or a list of edits of the"
        " default pipeline, at the top or under the key `pipeline`; see docs/stages.md."
    )
    return click.option("--pipeline", "pipeline", metavar="FILE|JSON", default="", help=text)(function)


PipelineSource = FilePath | Sequence[Any] | None
"""Pipeline: a list of stages, a list of edits of the default pipeline, or a value of --pipeline (path of a file, or
JSON text).
"""


def is_given(pipeline: object) -> bool:
    """True if the caller gave a pipeline instead of the default one."""
    return pipeline is not None and pipeline != ""


class PipelineText(NamedTuple):
    """List of stages, or of edits of the default pipeline, with its position in a document."""

    value: Any
    documents: "tuple[YamlDocument, ...]" = ()
    prefix: KeyPath = ("pipeline",)
    """Keys that lead to the list in the document."""


def read_pipeline(given: PipelineSource) -> PipelineText | None:
    """Stages or edits from a value of --pipeline or from Python. None if no pipeline is given. Raises InputError for a
    file that is missing, cannot be parsed, or is of another kind."""
    if given is None or not is_given(given):
        return None
    if not isinstance(given, str | PathLike):
        return PipelineText(list(given))
    from tilewright.base.file_kinds import PIPELINE, refuse_other_kind
    from tilewright.base.yamlfile import load_yaml, parse_yaml

    text = os.fspath(given)
    is_json = text.lstrip().startswith(("[", "{"))
    document = parse_yaml(text) if is_json else load_yaml(existing_file(text, "pipeline"))
    keyed = isinstance(document.data, dict) and "pipeline" in document.data
    if document.file and not keyed:
        refuse_other_kind(document, PIPELINE)
    return PipelineText(
        document.data["pipeline"] if keyed else document.data,
        (document,) if document.file else (),
        ("pipeline",) if keyed or not document.file else (),
    )


_BITS = (
    "NAME=BITS, where NAME is weights, activations or partial (also after an operator: Conv.weights), and BITS is a"
    " whole number"
)


def parse_network_options(
    dims: tuple[str, ...],
    input_shapes: tuple[str, ...] = (),
    branches: tuple[str, ...] = (),
    precision: str = ASSUMED,
    bits: tuple[str, ...] = (),
    zeros: tuple[str, ...] = (),
) -> NetworkOptions:
    """Network options from NAME=VALUE texts. Raises InputError with a problem for each wrong text."""
    problems: list[Problem] = []
    sizes = _pairs("dims", dims, _size, "NAME=SIZE with a SIZE from 0 to 2^53", problems)
    shapes = _pairs("input_shapes", input_shapes, _shape, "NAME=SIZE,SIZE,... with sizes from 0 to 2^53", problems)
    chosen = _pairs("branches", branches, str, "NODE=then or NODE=else", problems)
    parts = tuple(part for text in bits for part in text.split(","))
    widths = _pairs("bits", parts, _size, _BITS, problems)
    parts = tuple(part for text in zeros for part in text.split(","))
    shares = _pairs("zeros", parts, _share, "NAME=SHARE with weights, activations or outputs as NAME", problems)
    options = NetworkOptions(sizes, shapes, chosen, precision, widths, shares)
    try:
        options.check()
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return options


def _pairs(
    option: str, texts: tuple[str, ...], read: Callable[[str], T | None], allowed: str, problems: list[Problem]
) -> tuple[tuple[str, T], ...]:
    values: dict[str, T] = {}
    for text in texts:
        name, _, right = text.rpartition("=")
        value = read(right) if name and right else None
        if value is None:
            problems.append(Problem("wrong value", path=option, value=repr(text[:60]), allowed=allowed))
        elif name in values:
            problems.append(Problem("this name is given twice", path=option, value=repr(name)))
        else:
            values[name] = value
    return tuple(values.items())


def _size(text: str) -> int | None:
    # A text with more digits than the limit is not converted, because Python refuses to convert very long numbers.
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and len(text.lstrip("0")) <= len(str(LARGEST_WHOLE_NUMBER))):
        return None
    return int(text) if int(text) <= LARGEST_WHOLE_NUMBER else None


def _share(text: str) -> float | None:
    """Number that the text gives; None if the text is not a finite number."""
    try:
        share = float(text)
    except ValueError:
        return None
    return share if isfinite(share) else None


def _shape(text: str) -> tuple[int, ...] | None:
    sizes = [_size(part) for part in text.split(",")]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def echo_json(value: Any) -> None:
    """Print a JSON value on one line."""
    echo_json_text(canonical_text(value))


def echo_paths(paths: Sequence[Path], as_json: bool) -> None:
    """Print the files that were written."""
    if as_json:
        echo_json([str(path) for path in paths])
    else:
        echo_text(terminal_lines(str(path) for path in paths), nl=True)


Part = Literal["", "tables", "figures"]
"""Part of a report to write: TABLES for tables, data, texts and pages, FIGURES for figures, "" for all of these."""


def refuse_paper(paper: str | None, *needed: tuple[str, object]) -> None:
    """Raise InputError if `paper` is given but the command writes no file. `needed` has pairs (option, value). The
    command writes no file if one of these values is empty or false.
    """
    missing = [option for option, value in needed if not value]
    if paper is not None and missing:
        message = f"has no effect without {' and '.join(missing)}, because nothing is written"
        raise InputError([Problem(message, path="paper", value=str(paper))])


only_option = click.option(
    "--only",
    type=click.Choice([TABLES, FIGURES]),
    default=None,
    help="Part of the report to write; default: both parts.",
)


_UNUSED = "tilewright.base.unused"
"""Key of the click context. Its value is the list of notices of unused input, which are printed when the command ends.
"""


def echo_notices(notices: Sequence[str], with_remarks: bool = False) -> None:
    """Print notices to standard error, warnings after the others. Notices of unused input are printed when the command
    ends, each only once. Several remarks on the numbers of a file are combined into one line, unless `with_remarks` is
    true.
    """
    notices = sorted(notices if with_remarks else folded(notices), key=lambda one: isinstance(one, Caution))
    flags = kept_flags()
    notices = [notice_in_flags(notice, flags) for notice in notices]
    context = click.get_current_context(silent=True)
    if context is None:
        _echo_lines(notice_lines(notices))
        return
    _echo_lines(dict.fromkeys(notice for notice in notices if not isinstance(notice, Unused)))
    if _UNUSED not in context.meta:  # a command and its group share this dict
        kept: list[str] = context.meta.setdefault(_UNUSED, [])
        context.find_root().call_on_close(lambda: _echo_lines(notice_lines(kept)))
    context.meta[_UNUSED] += unused_in(notices)


_REPEATED = "tilewright.repeated"
"""Key of the click context. Its value is the list of notices of options that are given more than once."""


def note_repeated(names: Sequence[str], is_told: bool) -> None:
    """Store a notice of each option that is given more than once. If `is_told` is true, the notices are also printed.
    With --strict, the verb reports them as errors.
    """
    notices = [unused_option(name, "is given more than once; only the last value counts") for name in names]
    click.get_current_context().meta[_REPEATED] = notices
    if is_told:
        echo_notices(notices)


def repeated_options() -> list[Unused]:
    """Notices of options that are given more than once to the running command."""
    context = click.get_current_context(silent=True)
    found: list[Unused] = [] if context is None else context.meta.get(_REPEATED, [])
    return found


def _echo_lines(lines: Iterable[str]) -> None:
    for line in lines:
        echo(f"{'warning' if isinstance(line, Caution) else 'note'}: {line}", err=True)


def strict_option(what: str = "") -> Callable[[Function], Function]:
    """Add the option --strict, which makes input without effect an error. `what` is a further condition under which
    --strict fails, for the help text.
    """
    text = f"Fail if {what}{', or if ' if what else ''}an option or a key of an input file has no effect."
    return click.option("--strict", is_flag=True, help=text)


UNCOSTED = "a part of the network has no computed cost"
"""Further condition under which --strict fails, for verbs that run a network."""


def keep_font_cache_here() -> None:
    """Keep the font list of matplotlib in the cache folder of the checkout, not in the user's home folder. This
    function does nothing outside of a checkout, or if the environment variable MPLCONFIGDIR already names another
    folder.
    """
    if (CHECKOUT / "Snakefile").is_file():
        folder = CACHES / FONTS
        os.environ.setdefault("MPLCONFIGDIR", str(folder))
        if os.environ["MPLCONFIGDIR"] == str(folder):
            trust_as_noted(folder, FONT_FILES)
