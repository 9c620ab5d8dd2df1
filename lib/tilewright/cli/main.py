"""Start of a verb, error messages and exit codes.

The exit codes are 0 for success; 1 for a bug of tilewright, a failed check of results, or no result that meets a limit;
2 for wrong input; 130 for an interruption.
"""

import gc
import importlib
import importlib.util
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tilewright import __version__
from tilewright.base.errors import InputError, TilewrightError, UnmetLimitError
from tilewright.base.harmless import terminal
from tilewright.cli import interruption
from tilewright.cli.old_names import OLD_VERBS, now_called, with_current_options
from tilewright.cli.terminal import echo, echo_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

USER_ERROR, OUR_BUG, INTERRUPTED = 2, 1, interruption.INTERRUPTED
UNMET_LIMIT = 1
"""Exit code if the input is correct but no result meets a limit, such as a deadline."""
DUE = "--due"
"""First argument of a job of the pipeline.

The second argument is the path of an order: a file that describes the unit of work that the job makes
(`base/artifacts/manifest.py`).
"""
PROGRAM, COMPLETION_VARIABLE = "tilewright", "_TILEWRIGHT_COMPLETE"
"""Name of the command, and the environment variable with which a shell asks for completions. Click derives the name of
the variable from the name of the command.
"""
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Files": {
        "new": ("tilewright.cli.new", "Write hardware, mapping and configuration files of a new accelerator."),
        "validate": ("tilewright.cli.validate", "Check files and report all errors in them."),
        "parse": ("tilewright.cli.parse", "Read hardware, a workload or a mapping; write its artifact."),
        "draw": ("tilewright.cli.draw", "Draw the memory hierarchy of a core."),
        "vary": ("tilewright.cli.vary", "Write variants of a hardware file, each with named changes."),
        "cost-library": (
            "tilewright.cli.costs",
            "Show the library of costs with its sources, and the cost of a memory.",
        ),
        "options": ("tilewright.cli.list_options", "List all options of configurations, verbs and stages."),
    },
    "Map a network on one core": {
        "map": ("tilewright.cli.map", "Find the best mapping of every layer of a network on a core."),
        "evaluate": ("tilewright.cli.evaluate", "Evaluate given mappings, with the full breakdown."),
        "export": ("tilewright.cli.export", "Write mappings of a run as a mapping file or as loop nests."),
        "depth-first": (
            "tilewright.cli.depth_first",
            "Run a chain of layers on one core, one tile after the other.",
        ),
        "attention": (
            "tilewright.cli.attention",
            "Find the best way to run attention on one core: fused, or layer by layer.",
        ),
    },
    "Several cores": {
        "fuse": ("tilewright.cli.fuse", "Find the best tiles and fused stacks of a network, and a core for each part."),
        "split": ("tilewright.cli.split", "Split layers whose weights are too large for the memories of the cores."),
        "cns": ("tilewright.cli.cns", "Cut a network into computation nodes for several cores."),
        "cost": (
            "tilewright.cli.cost",
            "Compute, for one core of a system, the cost of each computation node on this core.",
        ),
        "allocate": ("tilewright.cli.allocate", "Choose a core for each part of a network."),
        "schedule": ("tilewright.cli.schedule", "Schedule the computation nodes of a network on its cores."),
    },
    "Language models": {
        "tokens": ("tilewright.cli.tokens", "Compute the cost of tokens of a language model, by context and batch."),
        "serving": ("tilewright.cli.serving", "Write the operator times of a language model for serving simulators."),
    },
    "Designs": {
        "explore": (
            "tilewright.cli.explore",
            "Evaluate all designs of a space, and list the best ones (Pareto front).",
        ),
        "decide": (
            "tilewright.cli.decide",
            "Choose one design of a space; show what the choice costs, how certain it is and what would change it.",
        ),
        "front": ("tilewright.cli.front", "Find the complete Pareto fronts of a space, with a certificate."),
        "check-front": ("tilewright.cli.certify", "Check a certificate of complete fronts."),
        "advise": ("tilewright.cli.advise", "Find changes that would improve a run, and the gain of each change."),
    },
    "Results": {
        "explain": (
            "tilewright.cli.explain",
            "Show energy and cycles of a run by cause, and the limiting port of each layer.",
        ),
        "compare": (
            "tilewright.cli.compare",
            "Show the differences of two runs or designs, by term, memory and layer.",
        ),
        "report": ("tilewright.cli.report", "Write figures, tables and loop nests of one run."),
        "page": ("tilewright.cli.page", "Write many runs as one page for a browser."),
        "summarize": ("tilewright.cli.summarize", "Write one table with the results of many runs."),
        "pareto": ("tilewright.cli.pareto", "List the runs on the Pareto front of energy, latency and area."),
        "results": ("tilewright.cli.results", "Show the folders of the results of a configuration."),
        "check": ("tilewright.cli.check", "Verify physical invariants on the artifacts of one run."),
        "audit": ("tilewright.cli.audit", "Recompute a random share of the results, and compare bit by bit."),
    },
    "Other tools and chips": {
        "translate": (
            "tilewright.cli.translate",
            "Turn a script for zigzag-dse or Stream into a command and a configuration.",
        ),
        "conformance": ("tilewright_evidence.conformance", "Compare results with those of zigzag-dse."),
        "compare-chips": (
            "tilewright_evidence.validation",
            "Compare predictions with published measurements of chips.",
        ),
        "accuracy": (
            "tilewright_evidence.court.verb",
            "Compare predictions with measurements of other research groups.",
        ),
    },
    "Upkeep": {
        "store": ("tilewright.cli.store", "Manage stored results and artifacts."),
        "warm-up": ("tilewright.cli.warm_up", "Compile all kernels now instead of in the first runs."),
        "completion": (
            "tilewright.cli.completion",
            "Print a completion script for bash, zsh or fish.",
        ),
    },
}
"""Verbs by heading of `--help`. Each verb has the pair (module that declares the verb, one line of help)."""
VERBS = {verb: entry for verbs in GROUPS.values() for verb, entry in verbs.items()}
"""Pair (module, line of help) of each verb, by name of the verb."""


class InterruptedRunError(Exception):
    """Error for an interruption by Ctrl-C. The message is one line on the results that are kept."""


class _Call(NamedTuple):
    """Call of a verb."""

    cpu_start_s: float | None
    """CPU time at which the call began, as in `main`."""
    is_job: bool
    """True if the call is a job of the pipeline. The options of the verb then come from a configuration."""


class _LazyGroup(click.Group):
    """Command group that imports the module of a verb only when a user calls the verb. The list of verbs needs no
    import.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb for verb, (module, _) in VERBS.items() if importlib.util.find_spec(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        from tilewright.cli.verb import command_of

        return command_of(VERBS[cmd_name][0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = self.list_commands(ctx)
        for heading, verbs in GROUPS.items():
            if rows := [(verb, text) for verb, (_, text) in verbs.items() if verb in known]:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=14)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(verb, help=text) for verb, (_, text) in VERBS.items() if verb.startswith(incomplete)]
        # Only options of the group are completed by click: to complete verbs, click would import the modules of all
        # verbs.
        return verbs + (click.Command.shell_complete(self, ctx, incomplete) if incomplete.startswith("-") else [])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from tilewright.base.errors import nearest_name

        if args and (name := OLD_VERBS.get(args[0])):
            if not ctx.resilient_parsing:
                echo(now_called(args[0], name), err=True)
            args = [name, *args[1:]]
        if args:
            words, remarks = with_current_options(args[0], args[1:])
            for remark in () if ctx.resilient_parsing else remarks:
                echo(remark, err=True)
            args = [args[0], *words]
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = nearest_name(args[0], list(VERBS))
            ctx.fail(f"No such verb '{args[0]}'." + (f" Did you mean '{near}'?" if near else ""))
        name, command, others = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _keep_flags(ctx, command, others)
            if not isinstance(command, click.Group):
                _note_repeated(command, others)
        return name, command, others

    def invoke(self, ctx: click.Context) -> Any:
        from tilewright.cli.flags import error_in_flags, kept_flags

        try:
            return super().invoke(ctx)
        except InputError as error:
            raise error_in_flags(error, kept_flags()).with_traceback(error.__traceback__) from error.__cause__


def _keep_flags(context: click.Context, command: click.Command, words: list[str]) -> None:
    """Store the flags of a verb, so that messages name them. A job of the pipeline stores none: its user wrote keys of
    a configuration.
    """
    from tilewright.cli.flags import flags_of, keep_flags

    if not (context.obj and context.obj.is_job):
        keep_flags(context, flags_of(command, words))


def _note_repeated(command: click.Command, args: list[str]) -> None:
    """Store notices of options that are given more than once (`note_repeated`). The verb uses the last value of each of
    these options.
    """
    try:
        given = command.make_parser(click.Context(command, resilient_parsing=True)).parse_args(list(args))[2]
    except click.UsageError:
        return  # click reports the error when the command runs
    once = [one for one in dict.fromkeys(given) if isinstance(one, click.Option) and not one.multiple]
    repeated = [one for one in once if given.count(one) > 1 and (one.secondary_opts or not one.is_flag)]
    if repeated:
        from tilewright.cli.options import note_repeated  # here: most commands start faster

        note_repeated([str(one.name) for one in repeated], is_told="--strict" not in args)


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, given: _say_version(context) if given else None,
    help="Show the version and the installed plug-ins, and exit.",
)
def cli() -> None:
    """Find the best way to run neural networks on accelerators, and its costs.

    Example: tilewright map --hardware config/hardware/zigzag/tpu_like.yaml --workload config/workload/resnet18.onnx
    --mapping config/mapping/zigzag/tpu_like.yaml -o out
    """


def _say_version(context: click.Context) -> None:
    """Print the version, then each installed plug-in with its package, and exit. Raises InputError if a plug-in cannot
    be loaded.
    """
    from tilewright.cli.plug_ins import plug_in_lines  # here: most commands start faster

    echo(f"{PROGRAM}, version {__version__}")
    for line in plug_in_lines():
        echo(line)
    context.exit()


def run(arguments: list[str] | None = None) -> None:
    """Entry point: run a verb and exit."""
    interruption.interrupt_verb()
    code = main(arguments, cpu_start_s=0.0)
    gc.freeze()  # at exit, Python looks for cycles among all objects: 30 ms for objects that end with the process
    sys.exit(code)


def main(arguments: list[str] | None = None, cpu_start_s: float | None = None) -> int:
    """Run a verb. Returns the exit code.

    `cpu_start_s` is the CPU time at which the call began, in seconds since the start of the process. It is 0 if the
    process was started for this verb. None stands for the present time.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == [DUE] and len(given) > 1:
        return _make(Path(given[1]), given[2:])
    return _dispatch(given, cpu_start_s)


def _make(due: Path, given: list[str]) -> int:
    """Make a unit of work, as a job of the pipeline. `due` is the path of the order, a file that describes the unit.
    Returns the exit code.

    `given` has the verb and its arguments. If they are too long for a command line, `given` is empty, and they are read
    from the order. If the order has no verb either, the job makes all units that the unit of the order needs.
    """
    from tilewright.base.artifacts.manifest import read_order
    from tilewright.cli.together import make_together, make_unit

    dispatch = partial(_dispatch, is_job=True)
    try:
        order = read_order(due)
        if given or order.job.words:
            return make_unit(order, given or order.job.words, dispatch)
        return make_together(due, dispatch, INTERRUPTED)
    except TilewrightError as error:
        _say_user_error(error, verbose=False)
        return USER_ERROR


def begin_cpu_s() -> float | None:
    """CPU time at which the call of the running verb began, in seconds since the start of the process. None if it is
    not known, such as in a function that is called from Python.
    """
    context = click.get_current_context(silent=True)
    return None if context is None or context.obj is None else context.obj.cpu_start_s


def _dispatch(given: list[str], cpu_start_s: float | None = None, is_job: bool = False) -> int:
    """Find and run a verb. Returns the exit code. `cpu_start_s` is as in `main`. `is_job` is true if the call is a job
    of the pipeline.
    """
    verbose = "-v" in given or "--verbose" in given
    try:
        result = cli.main(given, prog_name=PROGRAM, standalone_mode=False, obj=_Call(cpu_start_s, is_job))
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        _say_usage_error(error)
        return USER_ERROR
    except UnmetLimitError as error:
        _say_user_error(error, verbose)
        return UNMET_LIMIT
    except TilewrightError as error:
        _say_user_error(error, verbose)
        return USER_ERROR
    except InterruptedRunError as error:
        interruption.tell(terminal(f"interrupted: {error}"))
        return INTERRUPTED
    except (KeyboardInterrupt, click.Abort):
        interruption.tell(interruption.KEPT)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _say_unexpected(error, verbose)


def _say_usage_error(error: click.ClickException) -> None:
    """Print a message of click about arguments and options. The message can contain file names, so it is made safe for
    a terminal.
    """
    said = io.StringIO()
    error.show(said)
    echo_text(said.getvalue(), err=True)


def _say_user_error(error: TilewrightError, verbose: bool) -> None:
    if verbose:
        _print_traceback()
    for line in str(error).splitlines() or [type(error).__name__]:
        echo(f"error: {line}", err=True)


def _print_traceback() -> None:
    import traceback  # imported here: commands without an error start faster

    echo_text(traceback.format_exc(), err=True)


def _say_unexpected(error: Exception, verbose: bool) -> int:
    """Print an error of a class that tilewright does not define. Returns the exit code."""
    from tilewright.cli.plug_ins import installed_text, problem_in_plug_in  # here: most commands start faster

    if problem := problem_in_plug_in(error):
        _say_user_error(InputError([problem]), verbose)
        return USER_ERROR
    _say_our_bug(error, verbose, installed_text())
    return OUR_BUG


def _say_our_bug(error: Exception, verbose: bool, plug_ins: str) -> None:
    """Print an internal error. `plug_ins` names the installed plug-ins, because one of them can be the cause."""
    if verbose:
        _print_traceback()
    echo_text(f"internal error: {type(error).__name__}: {error}", err=True, nl=True)
    hint = "" if verbose else " Run again with -v for the traceback."
    if plug_ins:
        echo(f"This is a bug in a plug-in ({plug_ins}) or in tilewright {__version__}.{hint}", err=True)
    else:
        echo(f"This is a bug in tilewright {__version__}. Please report it.{hint}", err=True)
