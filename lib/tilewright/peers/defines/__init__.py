"""Counts of DeFiNES that differ from the counts of tilewright, in its model of a single layer (ZigZag of 2022)."""
