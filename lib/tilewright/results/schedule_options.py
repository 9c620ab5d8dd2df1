"""Options of the figure of a schedule, which the configuration is checked with.

Nothing heavy is imported here.
"""

from dataclasses import dataclass

from tilewright.base.parameters import Parameters


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleFigureOptions(Parameters):
    """How the schedule of several cores is drawn."""

    plot_full_schedule: bool = True
    """Draw the whole schedule as one picture; otherwise 5 % of it at its beginning, in its middle, at its end."""
    plot_data_transfer: bool = True
    """Draw transfers in it, in rows of links."""
