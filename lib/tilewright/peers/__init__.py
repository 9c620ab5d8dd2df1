"""Reimplementations of rules of other tools that differ from the rules of tilewright, for comparing results.

The cost model does not import these modules, but asks a `Registry` for an entry by name. `tilewright.base.entries`
lists the entries of each registry.
"""
