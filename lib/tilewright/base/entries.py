"""Entries of the registries: objects that imitate other tools, and built-in kinds of arrays.

This module is small and imports nothing, because `import tilewright` reads it.
"""

ENTRIES = {
    "tilewright.hardware.array_model": {
        "analog in-memory": "tilewright.hardware.in_memory:ANALOG",
        "digital in-memory": "tilewright.hardware.in_memory:DIGITAL",
    },
    "tilewright.mapping.locality": {"zigzag-3.9.1": "tilewright.peers.zigzag.data_locality:reference_reach"},
    "tilewright.workload.onnx.reader": {"zigzag-3.9.1": "tilewright.peers.zigzag.onnx_reading:read_reference"},
    "tilewright.multicore.scheduling.options": {"stream-2023": "tilewright.peers.stream.whole_tiles:MODEL"},
}
"""Module with a registry -> {name of an entry: object of the entry, as `module:attribute`}."""
