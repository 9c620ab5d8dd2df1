# Across runs.

WORKLOADS = sorted({run.workload for run in (*PLAN.runs, *PLAN.multi_runs)})
HARDWARE = sorted(
    name
    for name in {run.hardware for run in PLAN.runs}
    if f"hardware/{name}/hierarchy" not in UNITS.in_batches
)
BATCHES = [f"<results>/{file}" for file in UNITS.batch_files("runs")]
SUMMARIES = [
    *BATCHES,
    *expand("<results>/single/{run}/summary.json", run=OWN_RUNS),
    *expand("<results>/multi/{run}/summary.json", run=REPORTED_MULTI_RUNS),
]
# A configuration of design spaces alone has no runs to compare.
ACROSS_RUNS = (RUNS or MULTI_RUNS or UNFINISHED) and [
    "<results>/index.html",
    "<results>/summary.csv",
    "<results>/summary.parquet",
    "<results>/pareto.csv",
    *expand("<results>/pareto/{workload}.svg", workload=WORKLOADS),
    *expand("<results>/hardware/{hardware}/hierarchy.svg", hardware=HARDWARE),
]


rule across_runs:
    """What shows all runs beside each other."""
    input:
        ACROSS_RUNS,
    localrule: True
    message:
        "all runs are compared"


rule summary:
    """One row per run."""
    input:
        files=made(SUMMARIES, "summary"),
        due=due("summary"),
    output:
        csv=report(
            "<results>/summary.csv",
            caption="../report/summary.rst",
            category="Summary",
            labels={"run": "all", "shows": "totals"},
        ),
        parquet="<results>/summary.parquet",
    log:
        "<logs>/summary.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        unfinished=UNFINISHED,
    message:
        "{rule} of all runs"
    shell:
        # The verb with all runs is in the order: a command line has room for some thousands.
        "python -m tilewright --due {input.due:q} &> {log:q}"


rule page:
    """All runs as one page for a browser."""
    input:
        files=made(
            [
                *SUMMARIES,
                *expand("<results>/single/{run}/layers.jsonl", run=OWN_RUNS),
                *expand(
                    "<results>/single/{run}/report/bottlenecks.json", run=OWN_RUNS
                ),
                *expand("<results>/multi/{run}/schedule.npz", run=REPORTED_MULTI_RUNS),
            ],
            "page",
        ),
        due=due("page"),
    output:
        report(
            "<results>/index.html",
            caption="../report/page.rst",
            category="Summary",
            labels={"run": "all", "shows": "everything"},
        ),
    log:
        "<logs>/page.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        unfinished=UNFINISHED,
    message:
        "{rule} of all runs"
    shell:
        "python -m tilewright --due {input.due:q} &> {log:q}"
