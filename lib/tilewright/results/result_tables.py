"""Tables of a run on one core for a notebook.

A table has the same columns as the CSV file of the pipeline, because the same function makes both. The names of columns
contain units. The modules that make a table are imported only when the table is requested, so that commands start
faster.
"""

from typing import TYPE_CHECKING, Protocol

from tilewright.base.harmless import terminal
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES

if TYPE_CHECKING:
    import pandas

    from tilewright.cost.record import LayerRecord

_SHOWN_OF_LAYERS = (
    *("layer", "operator_type", "mac_count", "operation_count", ENERGY_PJ, LATENCY_CYCLES),
    "mac_utilization_with_offloading",
)


class _OfOneCore(Protocol):
    """Interface that the tables of a run on one core need."""

    @property
    def records(self) -> "tuple[LayerRecord, ...]":
        """Records of the distinct layer problems."""

    @property
    def summary(self) -> JsonObject:
        """Summary with the totals of the run."""


class OneCoreTables:
    """Tables of a run on one core. A class that inherits from this class must have `records` and `summary`."""

    __slots__ = ()

    @property
    def layers(self: _OfOneCore) -> "pandas.DataFrame":
        """Table with a row for each layer in execution order, as in `layers.csv`: energies in pJ, times in cycles."""
        from tilewright.results.tables import layer_table

        return layer_table(self.records, self.summary)

    @property
    def energy(self: _OfOneCore) -> "pandas.DataFrame":
        """Table with a row for each part of the energy, in pJ: by layer, term, memory, operand and direction. The rows
        add up to the total.
        """
        from tilewright.results.bottlenecks import energy_table, layer_shares
        from tilewright.results.records import layers_in_order

        placed = layers_in_order(self.records, self.summary)
        return energy_table([share for layer in placed for share in layer_shares(layer.name, layer.record)])

    @property
    def ports(self: _OfOneCore) -> "pandas.DataFrame":
        """Table with a row for each layer and port of a memory. Its columns have the cycles in which the port moves
        data, and the cycles that the array would wait for this port if no other port made it wait.

        For the effect of a wider port, use `tilewright.explain`, which also reads the hardware.
        """
        from tilewright.results.bottlenecks import use_table, uses_of
        from tilewright.results.records import layers_in_order

        return use_table(uses_of(layers_in_order(self.records, self.summary)))

    @property
    def schedule(self: _OfOneCore) -> "pandas.DataFrame":
        """Table with the start and end of each layer, in cycles; layers run one after another."""
        import pandas

        from tilewright.results.records import layers_in_order

        placed = layers_in_order(self.records, self.summary)
        cycles = pandas.Series([layer.record.latency_cycles for layer in placed], dtype=float)
        ends = cycles.cumsum()
        columns = {
            "layer": [layer.name for layer in placed],
            "core": [layer.record.core for layer in placed],
            "start_cycles": ends - cycles,
            "end_cycles": ends,
        }
        return pandas.DataFrame(columns)

    def __repr__(self: _OfOneCore) -> str:
        from tilewright.results.shown import totals_text

        said = self.summary
        counts = f"{said['layers']} layers, {said['distinct_layers']} distinct"
        return terminal(f"<{said['workload']} on {said['hardware']}: {counts}; {totals_text(said)} ({said['model']})>")

    def _repr_html_(self) -> str:
        from tilewright.results.shown import shown_html

        return shown_html(repr(self)[1:-1], self.layers, _SHOWN_OF_LAYERS)  # type: ignore[misc]  # see _OfOneCore
