"""What limits a run on several cores: what each core does with the latency, what twice as much of a part would save,
how full links are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.report.multi.bars import ScheduleView
from tilewright.report.multi.core_cycles import CoreCycles, core_cycles
from tilewright.report.multi.doubled_parts import Limits, schedule_limits

if TYPE_CHECKING:
    import pandas

    from tilewright.report.multi.result_tables import CoreCosts


class LinkUse(NamedTuple):
    """What a link carries."""

    name: str
    kind: str
    width_bits_per_cycle: int | None
    """None of one without a limit."""
    bits: int
    busy: float
    """The share of the latency in which anything moves."""
    utilisation: float | None
    """The share of its width that is used; None of one without a limit."""


@dataclass(frozen=True)
class CoresReport:
    """What limits a run on several cores."""

    latency_cycles: int
    rows: tuple[CoreCycles, ...]
    """Those of a core add up to the latency."""
    limits: Limits
    links: tuple[LinkUse, ...]
    """Those that carry something, the fullest first."""
    layer: str = ""
    """The layer that alone is looked at; '' for all of them."""

    @property
    def cores(self) -> tuple[str, ...]:
        """The cores, in the order of the accelerator."""
        return tuple(dict.fromkeys(row.core for row in self.rows))

    @property
    def table(self) -> "pandas.DataFrame":
        """A row for each core, layer, cause and what it is of, in cycles, as in `core_cycles.csv`."""
        import pandas  # slow to load, and the text needs none

        return pandas.DataFrame(self.rows, columns=list(CoreCycles._fields))

    def of_layer(self, layer: str) -> "CoresReport":
        """The same of the cycles in which cores run a layer or wait for it."""
        return replace(self, rows=tuple(row for row in self.rows if row.layer == layer), layer=layer)

    def added(self, key: Callable[[CoreCycles], Any], causes: Iterable[str] | None = None) -> dict[Any, int]:
        """Cycles added up by a key, all of them or those of some causes; the most first."""
        wanted = None if causes is None else set(causes)
        found: dict[Any, int] = {}
        for row in self.rows:
            if wanted is None or row.cause in wanted:
                found[key(row)] = found.get(key(row), 0) + row.cycles
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def as_object(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "core_cycles": [row._asdict() for row in self.rows],
            "limits": self.limits.as_object(),
            "links": [link._asdict() for link in self.links],
        }


def cores_report(
    view: ScheduleView,
    costs: "CoreCosts | None",
    summary: Mapping[str, Any],
    node_ids: Sequence[int] | None = None,
) -> CoresReport | None:
    """What limits a schedule; None for one of a model that is not causal.

    `costs` are the cost tables by core file, `summary` is that of the run, `node_ids` are those of its layers.
    """
    rows = core_cycles(view, costs)
    if not rows:
        return None
    links = [LinkUse(**{name: link[name] for name in LinkUse._fields}) for link in summary["links"] if link["bits"]]
    links.sort(key=lambda link: (-(link.utilisation or 0.0), -link.busy))
    return CoresReport(view.schedule.latency_cycles, rows, schedule_limits(view, node_ids), tuple(links))
