"""Spaces of designs: files that define sets of accelerators, and the costs of these accelerators for some networks."""
