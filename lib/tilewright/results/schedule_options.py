"""Options of the figure of a schedule, against which the configuration is checked.

This module imports no large packages.
"""

from dataclasses import dataclass

from tilewright.base.parameters import Parameters


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleFigureOptions(Parameters):
    """Options for the figure of a schedule on several cores."""

    plot_full_schedule: bool = True
    """Draw the whole schedule. If false, draw three sections of 5 % each: at its beginning, in its middle and at its
    end.
    """
    plot_data_transfer: bool = True
    """Draw transfers in additional rows, one for each link."""
