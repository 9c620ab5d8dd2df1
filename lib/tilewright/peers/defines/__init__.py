"""DeFiNES: what its single-layer model, the ZigZag of 2022, counts in another way than the one that is used here."""
