"""The court: what we predict beside what others measured, one module for each set of measurements.

Each of them turns a row of its set into a case: a lower bound, an estimate, a roofline, and the other tool's figure.
"""
