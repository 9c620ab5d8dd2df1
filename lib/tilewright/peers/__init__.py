"""Other tools, rebuilt as far as our results are compared with theirs: what they do and we do not.

The model knows nothing of it: its modules ask a `Registry` by name, and `tilewright.base.entries` says what stands in
each.
"""
