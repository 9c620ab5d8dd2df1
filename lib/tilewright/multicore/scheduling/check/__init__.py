"""Checks that compute the results of a schedule and the lower bounds again, from the problem and the logs."""
