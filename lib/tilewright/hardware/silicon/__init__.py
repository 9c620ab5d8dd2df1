"""Library of costs with sources: SRAM (CACTI, interpolated), register files, DRAM, arithmetic, wires, links."""
