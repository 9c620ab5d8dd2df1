"""Spaces of designs: a file that defines a set of accelerators, and the costs of all of them for some networks."""
