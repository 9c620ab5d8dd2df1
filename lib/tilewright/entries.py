"""What stands in which registry: steps as in other tools, and what is built in of further terms and kinds of arrays.

Light: `import tilewright` reads it.
"""

ENTRIES = {
    "tilewright.hardware.array_model": {
        "analog in-memory": "tilewright.hardware.in_memory:ANALOG",
        "digital in-memory": "tilewright.hardware.in_memory:DIGITAL",
    },
    "tilewright.cost.energy_terms": {"leakage": "tilewright.cost.leakage:LEAKAGE"},
    "tilewright.scheduling.energy_terms": {"leakage": "tilewright.scheduling.leakage:LEAKAGE"},
    "tilewright.mapping.locality": {"zigzag-3.9.1": "tilewright.peers.zigzag.data_locality:reference_reach"},
    "tilewright.workload.onnx.reader": {"zigzag-3.9.1": "tilewright.peers.zigzag.onnx_reading:read_reference"},
    "tilewright.scheduling.options": {"stream-2023": "tilewright.peers.stream.whole_tiles:MODEL"},
}
"""Module with a registry -> name -> `module:attribute`."""
