# Across runs.

WORKLOADS = sorted({run.workload for run in PLAN.runs})
HARDWARE = sorted({run.hardware for run in PLAN.runs})
ACROSS_RUNS = [
    "results/summary.csv",
    "results/summary.parquet",
    "results/pareto.csv",
    *expand("results/pareto/{workload}.svg", workload=WORKLOADS),
    *expand("results/hardware/{hardware}/hierarchy.svg", hardware=HARDWARE),
]


rule summary:
    """One row per run."""
    input:
        expand("results/single/{run}/summary.json", run=RUNS),
    output:
        csv=report(
            "results/summary.csv",
            caption="../report/summary.rst",
            category="Summary",
            labels={"run": "all", "shows": "totals"},
        ),
        parquet="results/summary.parquet",
    log:
        "logs/summary.log",
    conda:
        "../../environment.yml"
    params:
        directories=expand("results/single/{run}", run=RUNS),
        code=CODE["summarize"],
    shell:
        "python -m tilewright summarize {params.directories:q} --csv {output.csv:q} --parquet {output.parquet:q}"
        " &> {log:q}"


# On a cluster only the mapping is worth a job; these take a second each.
localrules:
    all,
    parse_hardware,
    parse_workload,
    parse_mapping,
    check_single,
    report_single,
    summary,
    pareto,
    draw_hardware,
