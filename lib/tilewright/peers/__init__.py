"""Behaviour of other tools that tilewright does not have itself, rebuilt to compare results.

The model knows nothing of it: its modules ask a `Registry` by name, and `tilewright.base.entries` says what stands in
each.
"""
