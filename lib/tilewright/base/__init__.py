"""Ground that all rooms stand on: files, errors, YAML with places, parameters, registries, steps, proofs, artifacts."""
