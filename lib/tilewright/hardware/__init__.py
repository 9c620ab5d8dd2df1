"""Cores, memories, ports and arrays; links between cores and the paths over them; readers for the hardware YAML."""
