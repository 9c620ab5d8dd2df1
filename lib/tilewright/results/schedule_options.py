"""Options of the figure of a schedule.

This module imports no large packages, because the check of a configuration uses it.
"""

from dataclasses import dataclass

from tilewright.base.parameters import Parameters


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleFigureOptions(Parameters):
    """Options for the figure of a schedule on several cores."""

    plot_full_schedule: bool = True
    """Draw the whole schedule. If false, draw three sections with 5 % of the latency each: at the beginning, in the
    middle and at the end of the schedule.
    """
    plot_data_transfer: bool = True
    """Draw transfers in additional rows, one for each link."""
