"""Comparison of our predictions with measurements by others ("court"), with one module for each set of measurements.

Each module turns a row of a set into a case: a lower bound, an estimate, a roofline and, if there is one, the
prediction of another tool.
"""
