"""Counts of the single-layer cost model of DeFiNES (ZigZag of 2022) that differ from the counts of tilewright."""
