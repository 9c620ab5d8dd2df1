"""Comparisons of our results with those of the reference tool, with chips, and with measurements by others.

This package uses the model; the model uses nothing of this package. The commands `conformance`, `compare-chips` and
`accuracy` are in this package.
"""
