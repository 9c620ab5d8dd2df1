"""`tilewright validation`: comparison with chips."""

from pathlib import Path

import click

from tilewright.cli.options import FILE, common_options, echo_json, echo_notices


@click.command()
@click.argument("folder", type=FILE)
@click.option("--case", "cases", multiple=True, metavar="NAME", help="This case only; may be given several times.")
@click.option("--steps", is_flag=True, help="Also the steps from stream-2023 to the default model, one switch each.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Never changes a result.")
@common_options
def command(folder: Path, cases: tuple[str, ...], steps: bool, threads: int, verbose: bool, as_json: bool) -> int:
    """Compare published cases in FOLDER: chip, reference tool, our model of the reference, our own model.

    A case is a folder with accelerator.yaml, workload.yaml, mapping.yaml, run.yaml and expected.yaml; see
    docs/validation.md.

    Example: tilewright validation ../shared/validation --steps
    """
    from tilewright.silicon.case import find_cases, read_case
    from tilewright.silicon.comparison import as_plain, compare_case, comparison_text

    found = []
    for case in [read_case(*place) for place in find_cases(folder, cases)]:
        if verbose:
            echo_notices([f"{case.name}: {notice}" for notice in case.notices])
        found.append(compare_case(case, threads, steps))
    if as_json:
        echo_json([as_plain(case) for case in found])
    else:
        click.echo(comparison_text(found, verbose), nl=False)
    return 0


__all__ = ["command"]
