"""Stream's schedules of 2023 (rules in docs/multi-core-model.md#scheduling, numbers in
docs/accuracy.md#three-chips)."""

STREAM_2023 = "stream-2023"
"""Name of the schedule model, and of the set of switches, of Stream as it was validated against chips in 2023."""
