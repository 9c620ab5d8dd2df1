"""Schedules by the rules of Stream in 2023 (docs/multi-core-model.md#scheduling; numbers:
docs/accuracy.md#three-chips).
"""

STREAM_2023 = "stream-2023"
"""Name of the schedule model that follows the version of Stream that was validated against chips in 2023. In
comparisons with chips, the set of model switches that belongs to this version has the same name.
"""
