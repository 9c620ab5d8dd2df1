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
    from tilewright.workload.graph import Workload
    from tilewright.workload.network_identity import NetworkDifference


def network_of_run(place: str | Path) -> "Workload | None":
    """Network of the run at `place`: a folder, or a file of results in this folder. None if the results cannot be read,
    or if the network is not found.
    """
    from tilewright.pipeline.stages.multi.items import MODEL
    from tilewright.workload.source import parse_workload

    folder = Path(place).parent if Path(place).name in (LAYERS, SUMMARY, SCHEDULE) else Path(place)
    try:
        flow, summary = read_any_summary(folder)
        run = DescribedRun.of(folder, read_artifact(folder / SUMMARY).provenance, summary)
        if flow == MULTI:
            path, model = run.system_network(NetworkOptions()), MODEL
        else:
            hardware, model = run.hardware(), run.model
            path = None if hardware is None else run.network(core_in(hardware), NetworkOptions())
        return None if path is None else parse_workload(path, model)
    except TilewrightError:
        return None


def network_difference(places: Sequence[str]) -> "NetworkDifference | None":
    """Difference between the networks of two runs, which are at `places`. None if one of the networks is not found."""
    from tilewright.workload.network_identity import difference_of

    first, second = map(network_of_run, places)
    return None if first is None or second is None else difference_of(first, second)
