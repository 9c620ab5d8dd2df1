"""Whether a schedule keeps the rules, worked out again from the problem and the logs."""
