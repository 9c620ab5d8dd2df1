"""Compatibility with zigzag-dse 3.9.1: its rules for ONNX models and for data that stay on chip between layers, and
exports in its file layouts.
"""
