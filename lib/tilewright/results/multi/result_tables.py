"""Tables of a run on several cores for a notebook: times and costs of CNs and transfers.

The modules that make a table are imported only when the table is requested, so that commands start faster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilewright.base.errors import count_of
from tilewright.base.harmless import terminal
from tilewright.base.json_values import JsonObject
from tilewright.multicore.scheduling.core_costs import CoreCosts
from tilewright.multicore.scheduling.result import ScheduleArtifact

if TYPE_CHECKING:
    import pandas


class _OfSeveralCores(Protocol):
    """Interface that the tables of a run on several cores need."""

    @property
    def artifact(self) -> ScheduleArtifact:
        """Schedule, with the problem that it solves."""

    @property
    def summary(self) -> JsonObject:
        """Summary with the totals of the run."""

    @property
    def core_costs(self) -> CoreCosts | None:
        """Cost tables by core file; None if not known. Without cost tables, a layer's energy on the cores is a single
        term.
        """


class SeveralCoresTables:
    """Tables of a run on several cores. A class that inherits from this class must have `artifact`, `summary` and
    `core_costs`.
    """

    __slots__ = ()

    @property
    def layers(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each layer in the order of the network, as in `layers.csv`: energies in pJ, times in
        cycles.
        """
        from tilewright.results.multi.bars import ScheduleView
        from tilewright.results.multi.layer_places import layer_place_table

        return layer_place_table(ScheduleView(self.artifact))

    @property
    def cores(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each core, as in `cores.csv`."""
        from tilewright.results.multi.use_tables import core_use_table

        return core_use_table(self.summary)

    @property
    def memories(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each memory, as in `memories.csv`."""
        from tilewright.results.multi.use_tables import memory_use_table

        return memory_use_table(self.summary)

    @property
    def links(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each link, as in `links.csv`."""
        from tilewright.results.multi.use_tables import link_use_table

        return link_use_table(self.summary)

    @property
    def energy(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each part of the energy, in pJ. The rows add up to the total.

        Energy on the cores is divided by layer, term and memory. Energy of moved data is divided by cause; in these
        rows, the column `operand` has `link` or `memory`.
        """
        from tilewright.results.bottlenecks import energy_table, entry_shares
        from tilewright.results.run_ledger import added_up, schedule_energies

        return energy_table(entry_shares(added_up(schedule_energies(self.artifact, self.core_costs))))

    @property
    def schedule(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each computation node: number in the layer, core, times in cycles, and energy on the
        core in pJ. `artifact.schedule` has the same data as arrays.
        """
        import pandas

        from tilewright.results.multi.bars import ScheduleView

        artifact, view = self.artifact, ScheduleView(self.artifact)
        found, names, layer = artifact.schedule, artifact.names, artifact.graph.layer
        columns = {
            "layer": np.array(names.layer_names, object)[layer],
            "node": np.arange(view.node_count) - view.first_node[layer],
            "group": artifact.graph.group,
            "core": np.array(names.core_names, object)[found.allocation],
            "start_cycles": found.start_cycles,
            "end_cycles": found.end_cycles,
            "on_core_energy_pj": artifact.cn_energy_pj,
        }
        return pandas.DataFrame(columns)

    @property
    def transfers(self: _OfSeveralCores) -> "pandas.DataFrame":
        """Table with a row for each transfer, sorted by start: data, cause, source, target, and times in cycles."""
        import pandas

        from tilewright.results.multi.bars import CATEGORIES, ScheduleView

        artifact = self.artifact
        moves, names = artifact.schedule.transfers, artifact.names
        memories = np.array((*names.memory_names, None), object)  # the last stands for -1: none
        columns = {
            "tensor": np.array(names.tensor_names, object)[artifact.piece_tensor[moves["piece"]]],
            "cause": np.array(CATEGORIES, object)[ScheduleView(artifact).transfer_category],
            "from_memory": memories[moves["source_memory"]],
            "to_memory": memories[moves["target_memory"]],
            "bits": artifact.graph.piece_bits[moves["piece"]],
            "start_cycles": moves["start_cycles"],
            "end_cycles": moves["end_cycles"],
        }
        return pandas.DataFrame(columns)

    def __repr__(self: _OfSeveralCores) -> str:
        from tilewright.results.shown import totals_text

        names, summary = self.artifact.names, self.summary
        counts = f"{count_of(len(names.layer_names), 'layer')}, {count_of(self.artifact.graph.node_count, 'node')}"
        return terminal(f"<{names.network} on {names.accelerator}: {counts}; {totals_text(summary)}>")

    def _repr_html_(self) -> str:
        from tilewright.results.shown import shown_html

        return shown_html(repr(self)[1:-1], self.layers)  # type: ignore[misc]  # see _OfSeveralCores


@dataclass(frozen=True, eq=False, repr=False)
class ScheduledRun(SeveralCoresTables):
    """Run on several cores, read from the folder of the run."""

    artifact: ScheduleArtifact
    """Schedule, with the problem that it solves."""
    summary: dict[str, Any]
    """Totals, bounds, and the use of cores, memories and links."""
    core_costs: CoreCosts | None = None
    """Cost table of each core file; None if the folder has no cost tables."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Provenance from the summary: the inputs of the run."""

    @property
    def latency_cycles(self) -> int:
        """Latency of the schedule, in cycles."""
        return self.artifact.schedule.latency_cycles

    @property
    def energy_pj(self) -> float:
        """Energy of the schedule, in pJ."""
        return self.artifact.schedule.energy_pj
