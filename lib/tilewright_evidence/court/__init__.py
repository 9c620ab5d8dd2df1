"""Comparison of our predictions with measurements by others ("court"), with one module for each set of measurements.

Each module makes a case from each row of its set. A case has a lower bound, an estimate and a roofline. It also has the
prediction of another tool if the set contains one.
"""
