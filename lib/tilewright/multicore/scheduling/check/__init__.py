"""Checks of a schedule and of lower bounds, which compute all results again from the problem and the logs."""
