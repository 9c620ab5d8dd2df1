"""Exact search: branch and bound over loop orders, with a certificate (docs/proofs/exact-search.md)."""
