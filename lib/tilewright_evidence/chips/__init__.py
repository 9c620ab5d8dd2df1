"""Comparison with chips: published cases, run by the model that was validated with these cases and by our model.

The numbers and the reasons for the differences are in docs/accuracy.md#three-chips. The format of a case, which is a
folder, is in docs/formats.md.
"""
