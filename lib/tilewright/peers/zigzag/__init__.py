"""Rules of zigzag-dse 3.9.1 for reading ONNX models and for data that stay on chip between layers, and its file
layouts.
"""
