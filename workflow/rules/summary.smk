# Across runs.

WORKLOADS = sorted({run.workload for run in PLAN.runs})
HARDWARE = sorted({run.hardware for run in PLAN.runs})
ACROSS_RUNS = [
    "results/summary.csv",
    "results/summary.parquet",
    *(["results/pareto.csv"] if RUNS else []),
    *expand("results/pareto/{workload}.svg", workload=WORKLOADS),
    *expand("results/hardware/{hardware}/hierarchy.svg", hardware=HARDWARE),
]


rule summary:
    """One row per run."""
    input:
        expand("results/single/{run}/summary.json", run=RUNS),
        expand("results/multi/{run}/summary.json", run=REPORTED_MULTI_RUNS),
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
        directories=[
            *expand("results/single/{run}", run=RUNS),
            *expand("results/multi/{run}", run=REPORTED_MULTI_RUNS),
        ],
        code=CODE["summarize"],
    shell:
        "python -m tilewright summarize {params.directories:q} --csv {output.csv:q} --parquet {output.parquet:q}"
        " &> {log:q}"


# On a cluster only mapping, cost tables and the search for an allocation are worth a job; these take seconds.
localrules:
    all,
    parse_hardware,
    parse_workload,
    parse_mapping,
    parse_core,
    check_single,
    report_single,
    summary,
    pareto,
    draw_hardware,
    split_multi,
    parse_split_multi,
    cns_multi,
    schedule_multi,
    check_multi,
    report_multi,
    draw_system,
