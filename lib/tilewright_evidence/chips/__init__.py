"""Comparison with chips: published cases as folders, run by the model that was validated with them and by ours.

docs/accuracy.md#three-chips has the numbers and what explains the differences, docs/formats.md the format of a case.
"""
