"""Preflight of a network on an accelerator with several cores: errors of the input are found before the computation."""
