"""Comparison with chips: published cases are run by our default model, and by the model that was validated with these
cases.

docs/accuracy.md#three-chips has the numbers and the reasons for the differences. docs/formats.md has the format of a
case, which is a folder.
"""
