# Across runs.

WORKLOADS = sorted({run.workload for run in (*PLAN.runs, *PLAN.multi_runs)})
HARDWARE = sorted({run.hardware for run in PLAN.runs})
SUMMARIES = [
    *expand("<results>/single/{run}/summary.json", run=RUNS),
    *expand("<results>/multi/{run}/summary.json", run=REPORTED_MULTI_RUNS),
]
FOLDERS = [
    *expand(f"{RESULTS}/single/{{run}}", run=RUNS),
    *expand(f"{RESULTS}/multi/{{run}}", run=REPORTED_MULTI_RUNS),
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
        SUMMARIES,
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
        directories=FOLDERS,
        left_out=left_out_option,
        unfinished=UNFINISHED,
        code=CODE["summarize"],
    message:
        "{rule} of all runs"
    shell:
        "python -m tilewright summarize {params.directories:q} {params.left_out:q} --csv {output.csv:q}"
        " --parquet {output.parquet:q} &> {log:q}"


rule page:
    """All runs as one page for a browser."""
    input:
        SUMMARIES,
        expand("<results>/single/{run}/layers.jsonl", run=RUNS),
        expand("<results>/single/{run}/report/bottlenecks.json", run=RUNS),
        expand("<results>/multi/{run}/schedule.npz", run=REPORTED_MULTI_RUNS),
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
        directories=FOLDERS,
        left_out=left_out_option,
        unfinished=UNFINISHED,
        code=CODE["page"],
    message:
        "{rule} of all runs"
    shell:
        "python -m tilewright page {params.directories:q} {params.left_out:q} -o {output:q} &> {log:q}"
