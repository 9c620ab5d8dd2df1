"""The files in the folder of a run of the multi-core flow."""

from pathlib import Path

ALLOCATION_FILE, GENERATIONS_FILE, PARETO_FILE = "allocation.json", "generations.csv", "pareto.csv"
MAPPING_FILE, SCHEDULE_FILE, SUMMARY_FILE = "mapping.yaml", "schedule.npz", "summary.json"
GRAPH_FILE = "cn_graph.json"


def is_multi_run(folder: Path) -> bool:
    """Whether a folder is of a run of the multi-core flow, finished or not."""
    return any((folder / name).is_file() for name in (SCHEDULE_FILE, ALLOCATION_FILE, GRAPH_FILE))
