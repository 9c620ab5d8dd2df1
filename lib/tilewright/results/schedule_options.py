"""Options of the figure of a schedule, against which the configuration is checked.

This module imports no large packages.
"""

from dataclasses import dataclass

from tilewright.base.parameters import Parameters


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleFigureOptions(Parameters):
    """Options of the drawing of a schedule on several cores."""

    plot_full_schedule: bool = True
    """Draw the whole schedule as one picture; otherwise 5 % of it at its beginning, in its middle and at its end."""
    plot_data_transfer: bool = True
    """Draw transfers too, in rows of links."""
