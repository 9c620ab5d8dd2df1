"""Comparisons of our numbers with those of the reference tool and of chips.

This package uses the model; the model uses nothing of this package.

The commands `conformance`, `compare-chips` and `accuracy` are part of this package, too.
"""
