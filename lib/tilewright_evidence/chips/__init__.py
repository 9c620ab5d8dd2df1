"""Comparison with chips: published cases as folders, run by the model that was validated with them and by ours.

docs/validation.md has the format of a case, the numbers, and what explains the differences.
"""
