"""Computation nodes (CNs): layers cut into tiles by outer loops, and the data that flows from tile to tile."""
