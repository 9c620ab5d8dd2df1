"""The cost model: energy, latency and their breakdowns from one compiled kernel."""
