"""Spaces of designs: a file that says which accelerators there are, and what all of them cost for some networks."""
