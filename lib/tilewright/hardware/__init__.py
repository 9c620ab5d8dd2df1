"""Cores, memories, ports and arrays; readers for the hardware YAML."""
