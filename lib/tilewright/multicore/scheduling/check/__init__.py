"""Checks of the rules of a schedule, worked out again from the problem and the logs."""
