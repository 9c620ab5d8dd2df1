"""`tilewright check`: verification of physical invariants on the artifacts of one run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.envelope import is_artifact, provenance, read_artifact, read_object, write_document
from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem
from tilewright.base.steps import ATTENTION, DEPTH_FIRST, LAYERS, SUMMARY
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD, DescribedRun, hardware_digest
from tilewright.cli.options import echo_json, network_keywords
from tilewright.cli.runs import existing_run, is_multi_run, records_of
from tilewright.cli.terminal import echo
from tilewright.cli.verb import ARGUMENT, Help, Tell, silent, verb
from tilewright.hardware.core import Accelerator, Core
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.results.checks import Check


def _checked(
    run: FilePath,
    hardware: FilePath | None,
    workload: FilePath | None,
    mapping: FilePath | None,
    output: FilePath | None,
    network_options: NetworkOptions | None,
    tell: Tell = silent,
) -> "list[Check]":
    """Results of all checks. If `output` is given and no check fails, the results are written there."""
    from tilewright.results.checks import checks_document, failure_message

    run, network_options = Path(run), network_options or NetworkOptions()
    named = {HARDWARE: hardware, WORKLOAD: workload, MAPPING: mapping}
    given = {kind: None if file is None else Path(file) for kind, file in named.items()}
    if not any((run / name).is_file() for name in (DEPTH_FIRST, ATTENTION)):
        existing_run(run)
    described, step = (given[HARDWARE], given[WORKLOAD], given[MAPPING]), "check"
    if is_multi_run(run):
        from tilewright.cli.check_multi import check_folder

        step = "check_multi"
        checks, digests = check_folder(run, given, network_options, tell)
    elif (run / DEPTH_FIRST).is_file():
        from tilewright.cli.check_certificates import check_depth_first

        checks, digests = check_depth_first(run / DEPTH_FIRST, described, network_options)
    elif (run / ATTENTION).is_file():
        from tilewright.cli.check_certificates import check_attention as check_attention

        checks, digests = check_attention(run / ATTENTION, described)
    else:
        checks, digests = _check_single(run, given, tell)
    if output is not None and not failure_message(checks):
        write_document(Path(output), "tilewright/checks", checks_document(checks), provenance(step, digests))
    return checks


def _show(checks: "list[Check]", output: Path | None, verbose: bool, as_json: bool) -> None:
    from tilewright.results.checks import checks_document, failure_message

    if as_json:
        echo_json(checks_document(checks))
    elif verbose or not output:
        for one in checks:
            echo(f"{'ok' if one.passed else 'FAILED'}  {one.name}: {one.detail}")
    if failures := failure_message(checks):
        raise RuntimeError(failures)


@verb(
    """Verify physical invariants of the results in the folder RUN. If a check fails, tilewright has a bug, and the
    exit code is 1.

    RUN was written by `map`, `fuse` or `schedule`. It can also be a folder with a certificate of `depth-first
    --optimum` or `attention`; then give --hardware, --workload and --mapping.

    To check accesses and energies, the command needs the hardware of the run. To check the scheduling problem of a run
    on several cores, it needs hardware, workload and mapping. It looks for these files in RUN, beside RUN, in `config`
    and in the working folder. If they are elsewhere, give their paths.

    Example: tilewright check results/single/resnet18-tpu_like
    """,
    run=_checked,
    show=_show,
)
@network_keywords
def check(
    run: Annotated[FilePath, ARGUMENT],
    hardware: Annotated[FilePath | None, Help("Hardware file of the run; only needed if it is not found.")] = None,
    workload: Annotated[
        FilePath | None, Help("Workload of a run on several cores; only needed if it is not found.")
    ] = None,
    mapping: Annotated[
        FilePath | None, Help("Mapping of a run on several cores; only needed if it is not found.")
    ] = None,
    output: Annotated[FilePath | None, Help("File for the results of the checks (checks.json).")] = None,
    network_options: NetworkOptions | None = None,
) -> "list[Check]":
    """Checks of physical invariants on the folder of a run.

    Some checks need the input files of the run: `hardware`, `workload` and `mapping`. If a file is not given, the
    function looks for it in the same places as the command. If it finds no file, it leaves out the checks that need
    this file. The results are written to the file `output`, unless a check fails. Raises ArtifactError if a file of the
    run is missing or damaged, and InputError for wrong input files.
    """
    return _checked(run, hardware, workload, mapping, output, network_options)


def _check_single(run: Path, given: Mapping[str, Path | None], tell: Tell) -> "tuple[list[Check], dict[str, str]]":
    """Pair (checks of a run on one core, digests of the checked files)."""
    from tilewright.results.checks import check_run

    unused = [kind for kind in (WORKLOAD, MAPPING) if given[kind] is not None]
    if unused:
        raise InputError(
            [Problem(f"{run} is a run on one core; its check does not use this file", path=name) for name in unused]
        )
    layers = read_artifact(run / LAYERS, "tilewright/layers")
    summary = read_artifact(run / SUMMARY, "tilewright/single-summary")
    described = DescribedRun.of(run, layers.provenance, summary.payload)
    named = given[HARDWARE]
    hardware = named or described.hardware()
    if hardware is None:
        tell([f"{one.message}; accesses and energies are not checked" for one in described.not_found({HARDWARE: None})])
    core = None if hardware is None else _core(hardware)
    if named is not None and (said := described.contradiction(HARDWARE, hardware_digest(named))):
        tell([f"{named} {said}"])
    checks = check_run(records_of(layers, run / LAYERS), summary.payload, core)
    return checks, {"layers": layers.digest, "summary": summary.digest}


def _core(hardware: Path) -> Core:
    if is_artifact(hardware):
        return read_object(Accelerator, hardware, "tilewright/accelerator").cores[0]
    from tilewright.hardware.yaml_reader import read_accelerator

    return read_accelerator(hardware).cores[0]
