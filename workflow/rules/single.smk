# The single-core flow: one job maps and costs all layers of one workload on one core.

SINGLE_TARGETS = [
    *expand(
        "<results>/single/{run}/{artifact}",
        run=RUNS,
        artifact=artifacts(SINGLE),
    ),
    *expand(
        "<results>/single/{run}/{table}",
        run=RUNS,
        table=[*STEPS["report"].writes, *STEPS["explain"].writes],
    ),
    *expand(
        "<results>/single/{run}/report/{figure}",
        run=[run.name for run in PLAN.runs if run.figures],
        figure=FIGURE_FILES,
    ),
    *expand("<results>/single/{run}/exports", run=EXPORTING_RUNS),
]


rule map_single:
    """The best mapping of every distinct layer of a network on one core, with its cost."""

    # Also the files as written, so that what is unusual or wrong is told with its line.
    input:
        hardware=of_run("<results>/hardware/{hardware}/accelerator.json"),
        workload=of_run("<results>/workload/{workload}/{model}/workload.json"),
        mapping=of_run("<results>/mapping/{mapping}/mapping.json"),
        written=ancient(written_for_run),
    output:
        layers=update("<results>/single/{run}/layers.jsonl"),
        summary=update("<results>/single/{run}/summary.json"),
    log:
        "<logs>/single/{run}/map.log",
    benchmark:
        "<logs>/single/{run}/map.tsv"
    wildcard_constraints:
        run=runs_that(PLAN.runs, lambda run: not run.stages.exports),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=60,
    params:
        options=search_options,
        written=lambda wildcards, input: [
            word for file in input.written for word in ("--written", file)
        ],
        directory=subpath(output.layers, parent=True),
        code=CODE["map"],
        stage_code=stage_code,
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright map --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.written:q} -o {params.directory:q} {params.options:q}"
        " --threads {threads} &> {log:q}"


use rule map_single as map_and_export_single with:
    output:
        layers=update("<results>/single/{run}/layers.jsonl"),
        summary=update("<results>/single/{run}/summary.json"),
        exports=directory("<results>/single/{run}/exports"),
    wildcard_constraints:
        run=runs_that(PLAN.runs, lambda run: run.stages.exports),


rule check_single:
    """Physical invariants of a run, verified on its artifacts."""
    input:
        layers="<results>/single/{run}/layers.jsonl",
        summary="<results>/single/{run}/summary.json",
        hardware=of_run("<results>/hardware/{hardware}/accelerator.json"),
    output:
        update("<results>/single/{run}/checks.json"),
    log:
        "<logs>/single/{run}/check.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        directory=subpath(input.layers, parent=True),
        code=CODE["check"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright check {params.directory:q} --hardware {input.hardware:q} -o {output:q} &> {log:q}"


rule report_single:
    """The table of layers and the loop nests of a run."""
    input:
        layers="<results>/single/{run}/layers.jsonl",
        summary="<results>/single/{run}/summary.json",
    output:
        table=report(
            "<results>/single/{run}/report/layers.csv",
            caption="../report/layers.rst",
            category="Runs",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "table of layers"},
        ),
        nests="<results>/single/{run}/report/loop_nests.txt",
    log:
        "<logs>/single/{run}/report.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        source=subpath(input.layers, parent=True),
        directory=subpath(output.table, parent=True),
        undrawn=lambda wildcards, output: undrawn(
            Path(output.table).parent, RUN_OF[wildcards.run], FIGURE_FILES
        ),
        code=CODE["report"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "rm -f {params.undrawn:q}; "
        "python -m tilewright report {params.source:q} --only tables -o {params.directory:q} &> {log:q}"


rule explain_single:
    """Where the energy and the cycles of a run go, and which port of a memory limits which layer."""
    input:
        layers="<results>/single/{run}/layers.jsonl",
        summary="<results>/single/{run}/summary.json",
        hardware=of_run("<results>/hardware/{hardware}/accelerator.json"),
        workload=of_run("<results>/workload/{workload}/{model}/workload.json"),
    output:
        table="<results>/single/{run}/report/bottlenecks.csv",
        data="<results>/single/{run}/report/bottlenecks.json",
        ports=report(
            "<results>/single/{run}/report/ports.csv",
            caption="../report/ports.rst",
            category="Runs",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "ports by layer"},
        ),
    log:
        "<logs>/single/{run}/explain.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        source=subpath(input.layers, parent=True),
        directory=subpath(output.table, parent=True),
        code=CODE["explain"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright explain {params.source:q} --hardware {input.hardware:q} --workload {input.workload:q}"
        " --only tables -o {params.directory:q} &> {log:q}"


rule figures_single:
    """Figures of a run, and its loop nests as pages."""
    input:
        layers="<results>/single/{run}/layers.jsonl",
        summary="<results>/single/{run}/summary.json",
        hardware=of_run("<results>/hardware/{hardware}/accelerator.json"),
        workload=of_run("<results>/workload/{workload}/{model}/workload.json"),
    output:
        report(
            "<results>/single/{run}/report/energy.svg",
            caption="../report/energy.rst",
            category="Runs",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "energy by layer"},
        ),
        report(
            "<results>/single/{run}/report/latency.svg",
            caption="../report/latency.rst",
            category="Runs",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "latency by layer"},
        ),
        report(
            "<results>/single/{run}/report/bottlenecks.svg",
            caption="../report/bottlenecks.rst",
            category="Runs",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "bottlenecks"},
        ),
        pages=report(
            "<results>/single/{run}/report/loop_nests.pdf",
            caption="../report/loop_nests.rst",
            category="Runs",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "loop nests over memories"},
        ),
    log:
        "<logs>/single/{run}/figures.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        source=subpath(input.layers, parent=True),
        directory=subpath(output.pages, parent=True),
        code=CODE["figures"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "(python -m tilewright report {params.source:q} --only figures -o {params.directory:q} &&"
        " python -m tilewright explain {params.source:q} --hardware {input.hardware:q} --workload {input.workload:q}"
        " --only figures -o {params.directory:q}) &> {log:q}"
