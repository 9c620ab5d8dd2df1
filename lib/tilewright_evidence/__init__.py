"""Comparisons of our numbers with those of the reference tool and of chips.

They use the model; nothing of the model uses them.

The verbs `conformance`, `compare-chips` and `accuracy` are here too.
"""
