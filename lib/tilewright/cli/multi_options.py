"""Options that the verbs of the multi-core flow share.

Commands get functions that make the options: what is wrong with them is told together with what is wrong with files.
For that reason names of choices are texts here, which the options themselves check.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tilewright.cli.options import OBJECTIVES
from tilewright.errors import InputError, Problem, Problems

if TYPE_CHECKING:
    from tilewright.allocation.options import AllocationOptions
    from tilewright.fusion.tiling_options import TilingOptions
    from tilewright.scheduling.settings import ScheduleSettings

Function = TypeVar("Function", bound=Callable[..., Any])
_TILING = ("cn_define_mode", "hint_loops", "layer_cutoffs", "mode", "layer_stacks", "stack_cutoffs")
_CUTTING = {"cn_define_mode", "hint_loops", "layer_cutoffs"}
_SCHEDULE = (
    "scheduler_candidate_selection",
    "operands_to_prefetch",
    "schedule_model",
    "share_divisor",
    "cn_runtime",
)
_SEARCH = (
    "objective",
    "nb_ga_individuals",
    "nb_ga_generations",
    "seed",
    "ga_time_budget_s",
    "exhaustive_nodes",
    "threads",
)
_LISTS = ("hint_loops", "layer_cutoffs", "layer_stacks", "stack_cutoffs")


def split_share_option(function: Function) -> Function:
    """--split-w-percentage, a share of a memory."""
    text = "Share of a memory that weights may take, above 0 and at most 1."
    return click.option("--split-w-percentage", type=float, default=1.0, show_default=True, help=text)(function)


def tiling_options(function: Function) -> Callable[..., Any]:
    """The options of `TilingOptions`: the argument `tiling` of the command, as it was given."""

    @wraps(function)
    def with_tiling_options(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in _TILING}
        share = values.pop("split_w_percentage")
        return function(*args, tiling=TilingArguments(given, share), **values)

    for option in (
        split_share_option,
        click.option("--stack-cutoffs", metavar="JSON", help="Node ids at which stacks end, as [5, 9]."),
        click.option("--layer-stacks", metavar="JSON", help="Node ids of the layers of each stack, as [[0, 1], [2]]."),
        click.option(
            "--mode",
            metavar="[lbl|fused]",
            help="fused (default): layers of a stack are interleaved; lbl: every layer alone in its stack.",
        ),
        click.option(
            "--layer-cutoffs", metavar="JSON", help="Mode 3: node ids at which the next list of loops begins."
        ),
        click.option(
            "--hint-loops",
            metavar="JSON",
            help='Loops around CNs, innermost first, as [["OY", "all"]]; mode 2: inside; mode 3: a list of such lists.',
        ),
        click.option(
            "--cn-define-mode",
            type=int,
            help="1: --hint-loops around every layer; 2: inside of CNs; 3: by groups of layers; 4: as 1, and weights"
            " that are too large are split. Without it the mapping file cuts the layers.",
        ),
    ):
        with_tiling_options = option(with_tiling_options)
    return with_tiling_options


@dataclass(frozen=True)
class TilingArguments:
    """The options of `TilingOptions` as a command line gives them."""

    given: dict[str, Any]
    split_w_percentage: float

    def __call__(self) -> "TilingOptions":
        """The options. Raises InputError with all that are wrong."""
        return parse_tiling_options(self.given, self.split_w_percentage)

    def sound(self) -> "TilingOptions | None":
        """The options without those that are wrong, for checks of everything else; None if those cut the layers."""
        told = Problems()
        options = told.attempt(self)
        wrong = {problem.path.partition("[")[0].lower() for problem in told.found}
        if options is not None or wrong & _CUTTING:
            return options
        rest = {name: value for name, value in self.given.items() if name not in wrong}
        share = 1.0 if "split_w_percentage" in wrong else self.split_w_percentage
        return told.attempt(parse_tiling_options, rest, share)


def parse_tiling_options(given: dict[str, Any], split_w_percentage: float) -> "TilingOptions":
    """The options of a command line, where lists are JSON texts. Raises InputError with all that are wrong."""
    from tilewright.fusion.tiling_options import TilingOptions

    problems: list[Problem] = []
    values = {name: value for name, value in given.items() if value is not None}
    for name in _LISTS:
        if name in values:
            values[name] = _json(values[name], name, problems)
    readable = {name: value for name, value in values.items() if name not in {problem.path for problem in problems}}
    try:
        options = TilingOptions(**readable, split_w_percentage=split_w_percentage)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return options


def _json(text: str, name: str, problems: list[Problem]) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        problems.append(Problem("is not JSON", path=name, value=repr(text[:60]), allowed='as [["OY", "all"]]'))
        return None


def schedule_options(function: Function) -> Callable[..., Any]:
    """The options of `ScheduleSettings`: the argument `settings` of the command, which makes them when it is called."""

    @wraps(function)
    def with_schedule_options(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in _SCHEDULE}
        return function(*args, settings=partial(parse_schedule_options, given), **values)

    for option in (
        click.option(
            "--cn-runtime",
            metavar="[total0|total1|total2]",
            help="Runtime of a CN: with stalls; with on-loading as well (total1, default); with off-loading as well.",
        ),
        click.option("--share-divisor", type=int, help="A transfer starts at this part of its full width (4)."),
        click.option(
            "--schedule-model",
            metavar="[causal|stream-2023]",
            help="causal (default), or the list scheduler of the reference of 2023.",
        ),
        click.option(
            "--operands-to-prefetch", metavar="JSON", help='Layer operands whose constants are fetched ahead, as ["W"].'
        ),
        click.option(
            "--scheduler-candidate-selection",
            metavar="[latency|memory]",
            help="What a core runs next: what is ready first (latency, default), or what is deepest (memory).",
        ),
    ):
        with_schedule_options = option(with_schedule_options)
    return with_schedule_options


def parse_schedule_options(given: dict[str, Any]) -> "ScheduleSettings":
    """The settings of a command line; what is not given has its default. Raises InputError with all that are wrong."""
    from tilewright.scheduling.settings import ScheduleSettings

    problems: list[Problem] = []
    values = {name: value for name, value in given.items() if value is not None}
    if "operands_to_prefetch" in values:
        read = _json(values.pop("operands_to_prefetch"), "operands_to_prefetch", problems)
        if isinstance(read, list):
            values["operands_to_prefetch"] = read
        elif not problems:
            problems.append(Problem("must be a list", path="operands_to_prefetch", value=repr(read), allowed='["W"]'))
    try:
        settings = ScheduleSettings(**values)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return settings


def ga_options(function: Function) -> Callable[..., Any]:
    """The options of `AllocationOptions`: the argument `search` of the command, which makes them when it is called."""

    @wraps(function)
    def with_ga_options(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in _SEARCH}
        return function(*args, search=partial(parse_ga_options, given), **values)

    for option in (
        click.option("--threads", type=click.IntRange(min=1), help="Never changes a result; default: all processors."),
        click.option(
            "--exhaustive-nodes", type=int, help="Spaces of up to so many allocations times CNs: all of them."
        ),
        click.option("--ga-time-budget-s", type=float, help="Seconds after which no further evaluation begins."),
        click.option("--seed", type=int, help="Where the random numbers start (0)."),
        click.option("--nb-ga-generations", type=int, help="Generations after the first population (16)."),
        click.option("--nb-ga-individuals", type=int, help="Allocations in the population (16)."),
        objective_option,
    ):
        with_ga_options = option(with_ga_options)
    return with_ga_options


def parse_ga_options(given: dict[str, Any]) -> "AllocationOptions":
    """The options of a command line; what is not given has its default. Raises InputError with all that are wrong."""
    from tilewright.allocation.options import AllocationOptions

    values = {name.removeprefix("ga_"): value for name, value in given.items() if value is not None}
    try:
        return AllocationOptions(**values)
    except InputError as error:
        at = {"time_budget_s": "ga_time_budget_s"}
        raise InputError(
            [replace(problem, path=at.get(problem.path, problem.path)) for problem in error.problems]
        ) from None


def objective_option(function: Function) -> Function:
    """--objective, what the chosen allocation minimises."""
    text = "What the chosen point of the Pareto front of latency and energy minimises."
    return click.option("--objective", type=click.Choice(OBJECTIVES), default="latency", show_default=True, help=text)(
        function
    )
