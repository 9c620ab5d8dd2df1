"""`tilewright check`: physical invariants, verified on the artifacts of one run."""

from pathlib import Path

import click

from tilewright.artifacts.envelope import is_artifact, read_artifact, write_document
from tilewright.artifacts.objects import read_object
from tilewright.artifacts.provenance import provenance
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.runs import LAYERS_FILE, SUMMARY_FILE
from tilewright.hardware.core import Accelerator, Core


@click.command()
@click.argument("run", type=FILE)
@click.option("--hardware", type=FILE, help="Hardware file or artifact; with it, accesses and energies are checked.")
@click.option("-o", "--output", type=FILE, help="Artifact to write (checks.json).")
@common_options
def command(run: Path, hardware: Path | None, output: Path | None, verbose: bool, as_json: bool) -> None:
    """Verify physical invariants on the folder RUN that `tilewright map` wrote. A failed check is our bug: exit code 1.

    Example: tilewright check results/single/resnet18-tpu_like --hardware config/hardware/tpu_like.yaml
    """
    from tilewright.report.checks import check_run, checks_document, failure_message

    layers = read_artifact(run / LAYERS_FILE, "tilewright/layers")
    summary = read_artifact(run / SUMMARY_FILE, "tilewright/single-summary")
    checks = check_run(layers.payload, summary.payload, _core(hardware) if hardware else None)
    failures = failure_message(checks)
    if as_json:
        echo_json(checks_document(checks))
    elif verbose or not output:
        click.echo("\n".join(f"{'ok' if check.passed else 'FAILED'}  {check.name}: {check.detail}" for check in checks))
    if failures:
        raise RuntimeError(failures)
    if output:
        made_by = provenance("check", {"layers": layers.digest, "summary": summary.digest})
        write_document(output, "tilewright/checks", checks_document(checks), made_by)


def _core(hardware: Path) -> Core:
    if is_artifact(hardware):
        return read_object(Accelerator, hardware, "tilewright/accelerator").cores[0]
    from tilewright.hardware.yaml_reader import read_accelerator

    return read_accelerator(hardware).cores[0]
