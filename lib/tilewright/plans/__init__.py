"""Search for fusion plans on several cores: stacks, tiles, parts between cores, cores and schedules together."""
