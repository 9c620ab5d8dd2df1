"""Schedules by the rules of Stream in 2023 (docs/multi-core-model.md#scheduling; numbers:
docs/accuracy.md#three-chips).
"""

STREAM_2023 = "stream-2023"
"""Name of the schedule model that follows Stream in the version of 2023, which was validated against chips. Comparisons
with chips use this name also for the model switches of this version.
"""
