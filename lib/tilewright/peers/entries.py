"""What of the peers stands in which registry of the model. Light, since `import tilewright` reads it."""

ENTRIES = {
    "tilewright.scheduling.models": {"stream-2023": "tilewright.peers.stream.model:MODEL"},
}
"""Module with a registry -> name -> `module:attribute`."""
