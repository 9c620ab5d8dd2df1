"""`tilewright results`: folders of the results of a configuration, and the runs that are not up to date.

The manifest of the results decides whether a result is up to date (`base/artifacts/manifest.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.artifacts.files import FilePath, write_atomically, writing
from tilewright.base.artifacts.manifest import UP_TO_DATE, ResultsLedger
from tilewright.base.errors import InputError, Problem
from tilewright.base.harmless import terminal, terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import DECISION, FRONT, MULTI, SINGLE, SPACE, SUMMARY
from tilewright.cli.options import echo_json
from tilewright.cli.runs import UNFINISHED_KEYS, read_unfinished
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import ARGUMENT, Help, verb
from tilewright.results.run_text import FAILED, STALE

if TYPE_CHECKING:
    from tilewright.cli.units import Units
    from tilewright.pipeline.configuration.keys import RunPlan


def _show(found: Mapping[str, Any], output: Path | None, spaces: bool, report: bool, as_json: bool) -> None:
    if as_json:
        echo_json(found)
    elif report:
        echo(found["report_order"])
    elif spaces:
        for row in found["unfinished_spaces"]:
            echo_text("\t".join(terminal(row[key]) for key in ("file", "folder", "paper")), nl=True)
    elif not output:
        echo_text(terminal_lines((found["results"], found["logs"])), nl=True)
        for row in found.get("unfinished", ()):
            echo(f"{row['run']}: {row['state']}")


@verb(
    """Print the folder of the results of the configuration file CONFIG, then the folder of the logs.

    Example: tilewright results config/config.yaml
    """,
    show=_show,
)
def results(
    config: Annotated[FilePath, ARGUMENT],
    claim: Annotated[bool, Help("Make the folder of the results, and write a file there that names CONFIG.")] = False,
    unfinished: Annotated[bool, Help("Also print the runs whose results are missing or out of date.")] = False,
    output: Annotated[FilePath | None, Help("JSON file for the list of unfinished runs.")] = None,
    spaces: Annotated[
        bool,
        Help(
            "Print only the unfinished design spaces, one per line: the file, the folder, and the width of figures for"
            " a paper, separated by tabs."
        ),
    ] = False,
    report: Annotated[
        bool,
        Help("If the report is out of date, print only the path of the file that describes the job for the report."),
    ] = False,
    left_out: Annotated[
        FilePath | None, Help("With --report: file with the unfinished runs, as --output writes it.")
    ] = None,
    complete: Annotated[bool, Help("With --report: fail if a file of the results is not up to date.")] = False,
) -> dict[str, Any]:
    """Folders of a configuration file: the folder of results (key `results`) and the folder of logs (key `logs`).

    With `claim`, the folder of results is made, and a file in it names the configuration. With `unfinished`, the key
    `unfinished` has the runs that are not up to date. If `output` is given, these runs are also written to this JSON
    file. With `spaces`, the key `unfinished_spaces` has the explorations and complete fronts that are not up to date.

    With `report`, the key `report_order` has the path of the order. The order is the file that describes the job for
    the report of Snakemake. The path is '' if the report is up to date. The key `not_up_to_date` has the units that are
    not up to date, except the runs in the file `left_out`. With `complete`, units that are not up to date are an error.

    Raises InputError with all errors of the configuration.
    """
    from tilewright.cli import config_folders
    from tilewright.cli.config import read_config

    if Path(config).is_dir():
        message = "is a folder, but a configuration file is needed; use `tilewright summarize` for folders of runs"
        raise InputError([Problem(message, str(config))])
    read = read_config(Path(config))
    if claim:
        with writing(read.results):
            config_folders.claim(read.results, [str(config)])
    found: dict[str, Any] = {"results": str(read.results), "logs": str(read.logs)}
    if unfinished or spaces or output:
        states = _states(read)
        found["unfinished"] = unfinished_runs(read, states)
        if output:
            write_atomically(Path(output), canonical_text(found["unfinished"]) + "\n")
        if spaces:
            found["unfinished_spaces"] = unfinished_spaces(read, states)
    if report:
        found |= _of_report(read, read_unfinished(None if left_out is None else Path(left_out)))
        if complete and (changed := found["not_up_to_date"]):
            words = "not up to date, because inputs have changed during this run; start the run again"
            raise InputError([Problem(f"{_count(changed)} {words}", found["results"])])
    return found


def _count(units: Sequence[str]) -> str:
    shown = ", ".join(units[:3])
    return f"{shown} is" if len(units) == 1 else f"{len(units)} parts of the results ({shown}, ...) are"


def _states(plan: "RunPlan") -> dict[str, str]:
    """State of each unit, by name: UP_TO_DATE, or the reason why the unit must be made again."""
    units = _units(plan)
    ledger = ResultsLedger(plan.results, units.by_name)
    return {name: ledger.state(name) for name in units.by_name}


def _units(plan: "RunPlan", unfinished: Sequence[Mapping[str, str]] = ()) -> "Units":
    from tilewright.base.artifacts.step_code import PACKAGE, code_digests
    from tilewright.cli.units import Units

    return Units(plan, code_digests(PACKAGE), unfinished)


def _of_report(plan: "RunPlan", unfinished: Sequence[Mapping[str, str]]) -> JsonObject:
    """Values that `tilewright results --report` adds to its result: `report_order` and `not_up_to_date`.

    `report_order` is the path of the order: the file that describes the job for the report of Snakemake. It is '' if
    this report is up to date. `not_up_to_date` has the names of all units that are not up to date, except the report
    and the runs in `unfinished`.
    """
    units = _units(plan.without([row["run"] for row in unfinished]), unfinished)
    unit = units.report()
    ledger = ResultsLedger(plan.results, {**units.by_name, unit.name: unit})
    changed = [name for name in units.by_name if ledger.state(name) != UP_TO_DATE]
    order = "" if ledger.state(unit.name) == UP_TO_DATE else str(ledger.order(unit.name))
    return {"report_order": order, "not_up_to_date": changed}


def unfinished_runs(plan: "RunPlan", states: Mapping[str, str]) -> list[dict[str, str]]:
    """Rows with the columns UNFINISHED_KEYS, one for each run with a unit that is not up to date.

    `states` has the states of units. A run is also listed if one of its baselines is not up to date.
    """
    rows = []
    runs = [(run.flow, run.base or run.name, run) for run in (*plan.runs, *plan.multi_runs)]
    found: dict[tuple[str, str], str] = {}
    for flow, name, run in runs:
        state = _state(plan.results, states, f"{flow}/{run.name}")
        found[flow, name] = found.get((flow, name), "") or state
    for flow, name, run in runs:
        if run.name == name and found[flow, name]:
            said = (name, flow, found[flow, name], run.workload, run.hardware)
            rows.append(dict(zip(UNFINISHED_KEYS, said, strict=True)))
    return rows


def unfinished_spaces(plan: "RunPlan", states: Mapping[str, str]) -> list[dict[str, str]]:
    """Rows with `file`, `folder` and `paper`, one for each exploration and each complete front with a unit that is not
    up to date. `file` is the file of the space, and `folder` has the results.

    `paper` is the width of figures for a paper, or '' if nothing is written for a paper. A decision that is not up to
    date has a separate row, in which `folder` is the page of the decision.
    """
    asked = ((SPACE, plan.spaces), (FRONT, plan.fronts))
    decided = {name: state for name, state in states.items() if name in _decisions(plan)}
    others = {name: state for name, state in states.items() if name not in decided}
    paper = plan.paper or ""
    rows = [
        {"file": file, "folder": f"{plan.results}/{kind}/{name}", "paper": paper}
        for kind, said in asked
        for name, file in said.items()
        if _state(plan.results, others, f"{kind}/{name}")
    ]
    pages = _decisions(plan)
    return rows + [
        {"file": pages[name][0], "folder": f"{plan.results}/{pages[name][1]}", "paper": paper}
        for name, state in decided.items()
        if state != UP_TO_DATE
    ]


def _decisions(plan: "RunPlan") -> dict[str, tuple[str, str]]:
    """Decisions of a run plan, by name of the unit that makes the decision: pairs (file of the design space, path of
    the page). The path is relative to the folder of results.
    """
    spaces = plan.spaces.items() if plan.decide else ()
    return {f"{SPACE}/{name}/decide": (file, f"{SPACE}/{name}/{DECISION[1]}") for name, file in spaces}


_WITH_SUMMARY = {SINGLE: "map", MULTI: "schedule"}
"""Name of the step that writes the summary of a run, by the flow of the run (one core or several)."""


def _state(results: Path, states: Mapping[str, str], folder: str) -> str:
    """State of the run or space in a folder. It is '' if all its units are up to date. It is STALE if the folder has a
    summary, but the unit that makes the summary is not up to date. Otherwise, it is FAILED.
    """
    own = {name: state for name, state in states.items() if name.startswith(f"{folder}/")}
    if all(state == UP_TO_DATE for state in own.values()):
        return ""
    unit = f"{folder}/{_WITH_SUMMARY.get(folder.partition('/')[0], '')}"
    is_new = own.get(unit) == UP_TO_DATE
    return STALE if (results / folder / SUMMARY).is_file() and not is_new else FAILED
