"""Search for fusion plans on several cores: stacks, tiles, splits of layers between cores, cores, and schedule
options.
"""
