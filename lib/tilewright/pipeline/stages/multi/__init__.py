"""Stages of the multi-core flow, and the items and results of these stages."""
