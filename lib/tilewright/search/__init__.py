"""Spatial candidates times temporal orders, objectives, and the content-addressed store."""
