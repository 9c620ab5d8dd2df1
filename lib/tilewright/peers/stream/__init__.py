"""Schedules by the rules of Stream in 2023 (docs/multi-core-model.md#scheduling; numbers:
docs/accuracy.md#three-chips).
"""

STREAM_2023 = "stream-2023"
"""Name of the schedule model that follows the version of Stream that was validated against chips in 2023. Comparisons
with chips also use it as the name of the model switches of this version.
"""
