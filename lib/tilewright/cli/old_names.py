"""Former names of verbs, which work until the next release that may drop them.

Standard library only: `import tilewright` reads it for the functions of these names.
"""

GONE_WITH = "0.2.0"
"""The version without the former names."""
OLD_VERBS = {"certify": "check-front", "costs": "cost-library", "court": "accuracy", "validation": "compare-chips"}
"""Former name of a verb -> its name. `--help` and completion list names alone."""
