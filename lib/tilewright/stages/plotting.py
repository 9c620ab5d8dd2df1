"""The stage PlotTemporalMappings: figures of the mappings that pass it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilewright.artifacts.canonical import make_folder, writing
from tilewright.cost.record import LayerRecord
from tilewright.stages.base import Rest, Stage
from tilewright.stages.passing import Passed


@dataclass(frozen=True)
class PlotTemporalMappings(Stage):
    """Draws each mapping that passes: its loop nest over the memory levels of each operand
    (`<layer>_loop_nest.svg`, `.png`), and energy and latency of all as bars (`breakdown.svg`, `.png`).

    Above Workload the bars are those of the whole network, below it of one layer.

    Example: {insert: PlotTemporalMappings, before: Workload}
    """

    observes = True
    exports = True
    stands_for = "PlotTemporalMappingsStage and VisualizationStage"

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Everything that comes back; figures are drawn when all of it has."""
        passed = Passed(item, rest)
        yield from passed.watch(rest(item))
        from tilewright.report.figures import write_breakdown
        from tilewright.report.nest_figure import write_nest_figure

        folder = rest.control.exports
        make_folder(folder)
        named = passed.named_records()
        with writing(folder):
            for name, record in named:
                write_nest_figure(record, folder / f"{name.replace('/', '_')}_loop_nest", name)
            records = [_called(name, record) for name, record in named]
            write_breakdown(records, None, folder / passed.place.file_name("breakdown"))


def _called(name: str, record: LayerRecord) -> LayerRecord:
    return replace(record, layer=replace(record.layer, name=name), layer_names=(name,))
