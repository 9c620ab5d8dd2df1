"""`tilewright check`: physical invariants, verified on the artifacts of one run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.base.artifacts.envelope import is_artifact, provenance, read_artifact, read_object, write_document
from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem
from tilewright.base.steps import ATTENTION, DEPTH_FIRST, LAYERS, SUMMARY
from tilewright.cli.options import FILE, common_options, echo_json, network_keywords, network_options
from tilewright.cli.runs import existing_run, is_multi_run, records_of
from tilewright.cli.terminal import echo
from tilewright.hardware.core import Accelerator, Core
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.results.checks import Check


@click.command()
@click.argument("run", type=FILE)
@click.option("--hardware", type=FILE, help="Hardware file or artifact; with it, accesses and energies are checked.")
@click.option("--workload", type=FILE, help="Several cores: with hardware and mapping, the problem is checked too.")
@click.option("--mapping", type=FILE, help="Several cores: mapping file or artifact.")
@click.option("-o", "--output", type=FILE, help="Artifact to write (checks.json).")
@network_options
@common_options
def command(
    run: Path,
    hardware: Path | None,
    workload: Path | None,
    mapping: Path | None,
    output: Path | None,
    network_options: NetworkOptions,
    verbose: bool,
    as_json: bool,
) -> None:
    """Verify physical invariants on the folder RUN that `map` or `schedule` wrote, or with hardware, workload and
    mapping the certificates of `depth-first --optimum` and `attention`. A failed check is a bug of tilewright: exit
    code 1.

    Example: tilewright check results/single/resnet18-tpu_like --hardware config/hardware/tpu_like.yaml
    """
    from tilewright.results.checks import checks_document, failure_message

    checks = check(run, hardware, workload, mapping, output, network_options)
    failures = failure_message(checks)
    if as_json:
        echo_json(checks_document(checks))
    elif verbose or not output:
        for one in checks:
            echo(f"{'ok' if one.passed else 'FAILED'}  {one.name}: {one.detail}")
    if failures:
        raise RuntimeError(failures)


@network_keywords
def check(
    run: FilePath,
    hardware: FilePath | None = None,
    workload: FilePath | None = None,
    mapping: FilePath | None = None,
    output: FilePath | None = None,
    network_options: NetworkOptions | None = None,
) -> "list[Check]":
    """Checks of physical invariants on the folder of a run; with its descriptions there are more checks.

    `output` is an artifact to write; it is not written if a check fails. Raises ArtifactError if a file is missing or
    damaged, InputError for wrong descriptions.
    """
    from tilewright.results.checks import checks_document, failure_message

    run = Path(run)
    if not any((run / name).is_file() for name in (DEPTH_FIRST, ATTENTION)):
        existing_run(run)
    hardware, workload, mapping = (None if file is None else Path(file) for file in (hardware, workload, mapping))
    if is_multi_run(run):
        from tilewright.cli.check_multi import check_folder

        step, described = "check_multi", (hardware, workload, mapping)
        checks, digests = check_folder(run, described, network_options or NetworkOptions())
    elif (run / DEPTH_FIRST).is_file():
        from tilewright.cli.check_certificates import check_depth_first

        step, described = "check", (hardware, workload, mapping)
        checks, digests = check_depth_first(run / DEPTH_FIRST, described, network_options or NetworkOptions())
    elif (run / ATTENTION).is_file():
        from tilewright.cli.check_certificates import check_attention as check_attention

        step, described = "check", (hardware, workload, mapping)
        checks, digests = check_attention(run / ATTENTION, described)
    else:
        step = "check"
        checks, digests = _check_single(run, hardware, {"workload": workload, "mapping": mapping})
    if output is not None and not failure_message(checks):
        write_document(Path(output), "tilewright/checks", checks_document(checks), provenance(step, digests))
    return checks


def _check_single(
    run: Path, hardware: Path | None, others: dict[str, Path | None]
) -> "tuple[list[Check], dict[str, str]]":
    """(checks of a run on one core, digests of the checked files)."""
    from tilewright.results.checks import check_run

    unused = [name for name, path in others.items() if path is not None]
    if unused:
        raise InputError(
            [Problem(f"{run} is a run of one core, for which it has no use", path=name) for name in unused]
        )
    layers = read_artifact(run / LAYERS, "tilewright/layers")
    summary = read_artifact(run / SUMMARY, "tilewright/single-summary")
    checks = check_run(records_of(layers, run / LAYERS), summary.payload, _core(hardware) if hardware else None)
    return checks, {"layers": layers.digest, "summary": summary.digest}


def _core(hardware: Path) -> Core:
    if is_artifact(hardware):
        return read_object(Accelerator, hardware, "tilewright/accelerator").cores[0]
    from tilewright.hardware.yaml_reader import read_accelerator

    return read_accelerator(hardware).cores[0]
