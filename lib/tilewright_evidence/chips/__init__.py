"""Comparison with chips: published cases are run by our default model and by the model `stream-2023`.

The model `stream-2023` was validated with these cases. docs/accuracy/three-chips.md has the numbers and the reasons for
the differences. A case is a folder; docs/formats/spaces-and-cases.md has its format.
"""
