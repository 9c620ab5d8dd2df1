"""Comparisons of our results with those of the reference tool, with chips, and with measurements by others.

This package uses the package `tilewright`, but `tilewright` does not use this package. The commands `conformance`,
`compare-chips` and `accuracy` are in this package.
"""
