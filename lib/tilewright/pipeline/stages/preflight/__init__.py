"""Preflight of a network on an accelerator of several cores: faults are found before anything is computed."""
