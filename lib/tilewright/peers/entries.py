"""What of the peers stands in which registry of the model. Light, since `import tilewright` reads it."""

ENTRIES = {
    "tilewright.mapping.locality": {"zigzag-3.9.1": "tilewright.peers.zigzag.data_locality:reference_reach"},
    "tilewright.workload.onnx.reader": {"zigzag-3.9.1": "tilewright.peers.zigzag.onnx_reading:read_reference"},
    "tilewright.scheduling.options": {"stream-2023": "tilewright.peers.stream.whole_tiles:MODEL"},
}
"""Module with a registry -> name -> `module:attribute`."""
