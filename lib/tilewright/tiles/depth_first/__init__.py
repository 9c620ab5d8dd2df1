"""Depth-first schedules on one core: each tile runs through all layers of a stack before the next tile begins."""
