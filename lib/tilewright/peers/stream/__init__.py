"""Schedules by the rules of Stream in 2023 (docs/multi-core-model/scheduling.md; numbers:
docs/accuracy/three-chips.md).
"""

STREAM_2023 = "stream-2023"
"""Name of the schedule model that follows the version of Stream that was validated against chips in 2023. The set of
model switches for this version, which comparisons with chips use, has the same name.
"""
