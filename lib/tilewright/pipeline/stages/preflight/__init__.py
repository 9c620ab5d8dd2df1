"""Preflight (checks before the computation) of the input for a network on an accelerator with several cores."""
