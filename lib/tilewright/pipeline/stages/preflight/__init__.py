"""Preflight of a network on an accelerator of several cores: faults found before anything is computed."""
