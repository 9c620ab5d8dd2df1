"""Computation nodes (CNs): layers cut into tiles by outer loops, and the data that flow from tile to tile."""
