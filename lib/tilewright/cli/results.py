"""`tilewright results`: where the results of a configuration lie, and which of its runs are not up to date.

What is not up to date is what `snakemake --summary` tells of the files of runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.artifacts.digests import canonical_text
from tilewright.artifacts.files import FilePath, write_atomically, writing
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.runs import UNFINISHED_KEYS
from tilewright.errors import InputError, Problem
from tilewright.report.run_text import FAILED, STALE
from tilewright.steps import FRONT, SPACE, SUMMARY

if TYPE_CHECKING:
    from tilewright.configuration.keys import Plan


@click.command()
@click.argument("config", type=FILE)
@click.option("--claim", "is_claimed", is_flag=True, help="Make the folder, and note in it whose it is.")
@click.option("--plan", type=FILE, help="What `snakemake --summary` says of CONFIG: also tell what is unfinished.")
@click.option("-o", "--output", type=FILE, help="JSON file to write the unfinished runs into.")
@click.option("--spaces", is_flag=True, help="With --plan, say only which spaces are unfinished: file, tab, folder.")
@common_options
def command(
    config: Path,
    is_claimed: bool,
    plan: Path | None,
    output: Path | None,
    spaces: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """The folder of results of the configuration file CONFIG, then the folder of its logs.

    Example: tilewright results config/config.yaml
    """
    found = results(config, is_claimed, plan, output, spaces)
    if as_json:
        echo_json(found)
    elif spaces:
        for row in found.get("unfinished_spaces", ()):
            click.echo(f"{row['file']}\t{row['folder']}")
    elif not output:
        click.echo(f"{found['results']}\n{found['logs']}")
        for row in found.get("unfinished", ()):
            click.echo(f"{row['run']}: {row['state']}")


def results(
    config: FilePath,
    claim: bool = False,
    plan: FilePath | None = None,
    output: FilePath | None = None,
    spaces: bool = False,
) -> dict[str, Any]:
    """Where the results of a configuration file and their logs lie, as `results` and `logs`.

    With `claim` the folder is made, and noted in it whose it is. `plan` is a file with what `snakemake --summary` says
    of the configuration: `unfinished` are then the runs without a result that is up to date, also written to the JSON
    file `output`; with `spaces` there are `unfinished_spaces` too, explorations and complete fronts. Raises
    InputError with everything that is wrong with the configuration.
    """
    from tilewright.cli import config_files
    from tilewright.cli.config import read_config

    if Path(config).is_dir():
        message = "is a folder, and a configuration file is needed; `tilewright summarize` reads folders of runs"
        raise InputError([Problem(message, str(config))])
    read = read_config(Path(config))
    if claim:
        with writing(read.results):
            config_files.claim(read.results, [str(config)])
    found = [] if plan is None else unfinished_runs(read, Path(plan).read_text("utf-8"))
    if output:
        write_atomically(Path(output), canonical_text(found) + "\n")
    unfinished: dict[str, Any] = {} if plan is None else {"unfinished": found}
    if plan is not None and spaces:
        unfinished["unfinished_spaces"] = unfinished_spaces(read, Path(plan).read_text("utf-8"))
    return {"results": str(read.results), "logs": str(read.logs), **unfinished}


MISSING_DATE, UP_TO_DATE = "-", "no update"


def unfinished_runs(plan: "Plan", text: str) -> list[dict[str, str]]:
    """One row with UNFINISHED_KEYS for each run of which a file is missing or to be made again; what a run is compared
    with counts as a part of it. `text` is the table that `snakemake --summary` prints."""
    files = _files(text)
    rows = []
    runs = [(run.flow, run.base or run.name, run) for run in (*plan.runs, *plan.multi_runs)]
    states: dict[tuple[str, str], str] = {}
    for flow, name, run in runs:
        state = _state(files, f"{plan.results}/{flow}/{run.name}/")
        states[flow, name] = states.get((flow, name), "") or state
    for flow, name, run in runs:
        if run.name == name and states[flow, name]:
            said = (name, flow, states[flow, name], run.workload, run.hardware)
            rows.append(dict(zip(UNFINISHED_KEYS, said, strict=True)))
    return rows


def unfinished_spaces(plan: "Plan", text: str) -> list[dict[str, str]]:
    """The file and the folder of each exploration and each complete front of which a file is missing or to be made
    again."""
    files = _files(text)
    asked = ((SPACE, plan.spaces), (FRONT, plan.fronts))
    rows = [
        {"file": file, "folder": f"{plan.results}/{kind}/{name}"} for kind, said in asked for name, file in said.items()
    ]
    return [row for row in rows if _state(files, f"{row['folder']}/")]


def _files(text: str) -> dict[str, tuple[bool, bool]]:
    """Output file -> whether it is there, whether it is up to date."""
    rows = [line.split("\t") for line in text.splitlines()]
    return {row[0]: (row[1] != MISSING_DATE, row[-1] == UP_TO_DATE) for row in rows if len(row) > 2}


def _state(files: dict[str, tuple[bool, bool]], folder: str) -> str:
    """Of the run with this folder; '' if all of it is up to date."""
    own = {name: found for name, found in files.items() if name.startswith(folder)}
    if own and all(is_there and is_new for is_there, is_new in own.values()):
        return ""
    is_there, is_new = own.get(folder + SUMMARY, (False, False))
    return STALE if is_there and not is_new else FAILED
