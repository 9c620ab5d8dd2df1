"""Behaviour of other tools that tilewright does not have itself, rebuilt to compare results.

The cost model does not import these modules: it asks a `Registry` for an entry by name. `tilewright.base.entries`
lists the entries of each registry.
"""
