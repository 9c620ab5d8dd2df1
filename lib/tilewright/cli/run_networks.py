"""Networks of runs, found by their digests, for verbs that say how the networks of two runs differ."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import TilewrightError
from tilewright.base.steps import LAYERS, MULTI, SCHEDULE, SUMMARY
from tilewright.cli.described_run import DescribedRun, core_in
from tilewright.cli.runs import read_any_summary
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.hardware.core import Core
    from tilewright.workload.graph import Workload
    from tilewright.workload.network_identity import NetworkDifference


def network_of_run(place: str | Path) -> "Workload | None":
    """Network of the run at `place`: a folder, or a file of results in this folder. None if the results cannot be read,
    or if the network is not found.
    """
    return _described(place)[0]


def _described(place: str | Path) -> "tuple[Workload | None, Core | None]":
    """Pair (network, core) of the run at `place`. Each of the two is None if it is not found. For a run on several
    cores, the core is always None.
    """
    from tilewright.pipeline.stages.multi.items import MODEL
    from tilewright.workload.source import parse_workload

    folder = Path(place).parent if Path(place).name in (LAYERS, SUMMARY, SCHEDULE) else Path(place)
    try:
        flow, summary = read_any_summary(folder)
        run = DescribedRun.of(folder, read_artifact(folder / SUMMARY).provenance, summary)
        if flow == MULTI:
            core, path, model = None, run.system_network(NetworkOptions()), MODEL
        else:
            hardware, model = run.hardware(), run.model
            core = None if hardware is None else core_in(hardware)
            path = None if core is None else run.network(core, NetworkOptions())
        return (None if path is None else parse_workload(path, model)), core
    except TilewrightError:
        return None, None


def network_difference(places: Sequence[str]) -> "NetworkDifference | None":
    """Difference between the networks of two runs, which are at `places`. None if one of the networks is not found. If
    each run is on one core, bits and zeros are compared only for layers that at least one of these cores runs.
    """
    from tilewright.mapping.runnable import can_run
    from tilewright.workload.network_identity import difference_of

    (first, one), (second, other) = map(_described, places)
    if first is None or second is None:
        return None
    if one is None or other is None:
        return difference_of(first, second)
    described = ((first, one), (second, other))
    run_layers = {
        node.layer.name
        for network, core in described
        for node in network.nodes
        if node.layer is not None and can_run(core, node)
    }
    return difference_of(first, second, run_layers)
