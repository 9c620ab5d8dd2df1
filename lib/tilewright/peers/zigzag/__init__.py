"""Rules of zigzag-dse 3.9.1 for reading ONNX models and for data that stay on chip between layers, and exports in the
file layouts of zigzag-dse.
"""
