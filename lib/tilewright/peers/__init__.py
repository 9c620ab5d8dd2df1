"""Rules of other tools, reimplemented for comparing results.

Each of these rules differs from the rule of tilewright.

The cost model does not import these modules, but asks a `Registry` for a rule by its name. `tilewright.base.entries`
lists the names in each registry.
"""
