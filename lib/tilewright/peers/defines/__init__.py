"""Counts that the single-layer cost model of DeFiNES (ZigZag of 2022) computes in another way than tilewright."""
