"""`tilewright results`: the folders of the results of a configuration, and its runs that are not up to date.

The manifest of the results decides what is up to date (`base/artifacts/manifest.py`).
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
from tilewright.base.steps import FRONT, MULTI, SINGLE, SPACE, SUMMARY
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
            echo_text(f"{terminal(row['file'])}\t{terminal(row['folder'])}", nl=True)
    elif not output:
        echo_text(terminal_lines((found["results"], found["logs"])), nl=True)
        for row in found.get("unfinished", ()):
            echo(f"{row['run']}: {row['state']}")


@verb(
    """Print the folder of results of the configuration file CONFIG, then the folder of its logs.

    Example: tilewright results config/config.yaml
    """,
    show=_show,
)
def results(
    config: Annotated[FilePath, ARGUMENT],
    claim: Annotated[bool, Help("Make the folder, and note in it whose it is.")] = False,
    unfinished: Annotated[bool, Help("Also say which runs have no result that is up to date.")] = False,
    output: Annotated[FilePath | None, Help("JSON file to write the unfinished runs into.")] = None,
    spaces: Annotated[bool, Help("Say only which spaces are unfinished: file, tab, folder.")] = False,
    report: Annotated[bool, Help("Say only the order of the report, if it has to be made.")] = False,
    left_out: Annotated[FilePath | None, Help("With --report: the unfinished runs, as written into OUTPUT.")] = None,
    complete: Annotated[bool, Help("With --report: fail if a file of the results is not up to date.")] = False,
) -> dict[str, Any]:
    """Folders of the results and the logs of a configuration file, as `results` and `logs`.

    With `claim` the folder is made, and the configuration that owns it is recorded in it. With `unfinished` the key of
    that name has the runs that are not up to date, which are also written to the JSON file `output`. With `spaces` the
    key `unfinished_spaces` has explorations and complete fronts that are not up to date. With `report` the key
    `report_order` has the order of the report of Snakemake, or '' if it is up to date, and `not_up_to_date` the units
    that are not; `left_out` is the file of the runs that the report leaves out. With `complete` it is an error if there
    are such runs. Raises InputError with everything that is wrong with the configuration.
    """
    from tilewright.cli import config_folders
    from tilewright.cli.config import read_config

    if Path(config).is_dir():
        message = "is a folder, and a configuration file is needed; `tilewright summarize` reads folders of runs"
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
            words = "not up to date: what they are made of has changed during this run; run it again"
            raise InputError([Problem(f"{_count(changed)} {words}", found["results"])])
    return found


def _count(units: Sequence[str]) -> str:
    shown = ", ".join(units[:3])
    return f"{shown} is" if len(units) == 1 else f"{len(units)} parts of the results ({shown}, ...) are"


def _states(plan: "RunPlan") -> dict[str, str]:
    """State of each unit: UP_TO_DATE, or the reason why it must be made again."""
    units = _units(plan)
    ledger = ResultsLedger(plan.results, units.by_name)
    return {name: ledger.state(name) for name in units.by_name}


def _units(plan: "RunPlan", unfinished: Sequence[Mapping[str, str]] = ()) -> "Units":
    from tilewright.base.artifacts.step_code import PACKAGE, code_digests
    from tilewright.cli.units import Units

    return Units(plan, code_digests(PACKAGE), unfinished)


def _of_report(plan: "RunPlan", unfinished: Sequence[Mapping[str, str]]) -> JsonObject:
    """Order of the report of Snakemake, '' if it need not be made; and the units that are not up to date."""
    units = _units(plan.without([row["run"] for row in unfinished]), unfinished)
    unit = units.report()
    ledger = ResultsLedger(plan.results, {**units.by_name, unit.name: unit})
    changed = [name for name in units.by_name if ledger.state(name) != UP_TO_DATE]
    order = "" if ledger.state(unit.name) == UP_TO_DATE else str(ledger.order(unit.name))
    return {"report_order": order, "not_up_to_date": changed}


def unfinished_runs(plan: "RunPlan", states: Mapping[str, str]) -> list[dict[str, str]]:
    """Rows with UNFINISHED_KEYS, one for each run with a unit that must be made again, by the states of units.

    The baselines of a run are a part of it.
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
    """File and folder of each exploration and each complete front with a unit that must be made again."""
    asked = ((SPACE, plan.spaces), (FRONT, plan.fronts))
    return [
        {"file": file, "folder": f"{plan.results}/{kind}/{name}"}
        for kind, said in asked
        for name, file in said.items()
        if _state(plan.results, states, f"{kind}/{name}")
    ]


_WITH_SUMMARY = {SINGLE: "map", MULTI: "schedule"}
"""Unit in the folder of a run that makes its summary, by flow."""


def _state(results: Path, states: Mapping[str, str], folder: str) -> str:
    """State of the run or space with this folder; '' if all of its units are up to date."""
    own = {name: state for name, state in states.items() if name.startswith(f"{folder}/")}
    if all(state == UP_TO_DATE for state in own.values()):
        return ""
    unit = f"{folder}/{_WITH_SUMMARY.get(folder.partition('/')[0], '')}"
    is_new = own.get(unit) == UP_TO_DATE
    return STALE if (results / folder / SUMMARY).is_file() and not is_new else FAILED
