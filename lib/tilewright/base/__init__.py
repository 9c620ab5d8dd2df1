"""Basis of all other folders: files, errors, YAML with line numbers, parameters, registries, steps, proofs,
artifacts."""
