"""Stages of the multi-core flow, and their items."""
