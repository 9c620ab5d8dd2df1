"""Costs with a source: SRAM of CACTI and a law between its memories, register files, DRAM, arithmetic, wires, links."""
