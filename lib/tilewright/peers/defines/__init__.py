"""DeFiNES: the counts of its single-layer model (ZigZag of 2022) that differ from those of tilewright."""
