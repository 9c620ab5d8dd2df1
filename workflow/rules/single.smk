# The single-core flow: one job maps and costs all layers of one workload on one core.

# Runs that share jobs have none of their own, unless one of their files is asked for by name.
OWN_RUNS = [run for run in RUNS if run not in UNITS.batched]
SINGLE_TARGETS = [
    *[f"<results>/{file}" for file in UNITS.batch_files("runs")],
    *expand(
        "<results>/single/{run}/{artifact}",
        run=OWN_RUNS,
        artifact=artifacts(SINGLE),
    ),
    *expand(
        "<results>/single/{run}/{table}",
        run=OWN_RUNS,
        table=[*STEPS["report"].writes, *STEPS["explain"].writes],
    ),
    *expand(
        "<results>/single/{run}/report/{figure}",
        run=[run.name for run in PLAN.runs if run.figures],
        figure=names_of(ONE_CORE_FILES, FIGURES),
    ),
    *expand(
        f"<results>/single/{{run}}/{PAPER}",
        run=[run.name for run in PLAN.runs if run.paper],
    ),
    *expand("<results>/single/{run}/exports", run=EXPORTING_RUNS),
]


rule map_single:
    """The best mapping of every distinct layer of a network on one core, with its cost."""

    # Also the files as written, so that what is unusual or wrong is told with its line.
    input:
        hardware=made(
            of_run("<results>/hardware/{hardware}/accelerator.json"),
            "single/{run}/map",
        ),
        workload=made(
            of_run("<results>/workload/{workload}/{model}/workload.json"),
            "single/{run}/map",
        ),
        mapping=made(
            of_run("<results>/mapping/{mapping}/mapping.json"), "single/{run}/map"
        ),
        written=ancient(written_for_run),
        due=due("single/{run}/map"),
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
        command=command("single/{run}/map"),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} --jobs {threads} &> {log:q}"


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
        layers=made("<results>/single/{run}/layers.jsonl", "single/{run}/check"),
        summary=made("<results>/single/{run}/summary.json", "single/{run}/check"),
        hardware=made(
            of_run("<results>/hardware/{hardware}/accelerator.json"),
            "single/{run}/check",
        ),
        due=due("single/{run}/check"),
    output:
        update("<results>/single/{run}/checks.json"),
    log:
        "<logs>/single/{run}/check.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        command=command("single/{run}/check"),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"


rule report_single:
    """The table of layers and the loop nests of a run."""
    input:
        layers=made("<results>/single/{run}/layers.jsonl", "single/{run}/report"),
        summary=made("<results>/single/{run}/summary.json", "single/{run}/report"),
        due=due("single/{run}/report"),
    output:
        *reported(SINGLE, "Runs", of_part(ONE_CORE_FILES, TABLES)),
    log:
        "<logs>/single/{run}/report.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        command=command("single/{run}/report"),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"


rule explain_single:
    """Where the energy and the cycles of a run go, and which port of a memory limits which layer."""
    input:
        layers=made("<results>/single/{run}/layers.jsonl", "single/{run}/explain"),
        summary=made("<results>/single/{run}/summary.json", "single/{run}/explain"),
        hardware=made(
            of_run("<results>/hardware/{hardware}/accelerator.json"),
            "single/{run}/explain",
        ),
        workload=made(
            of_run("<results>/workload/{workload}/{model}/workload.json"),
            "single/{run}/explain",
        ),
        due=due("single/{run}/explain"),
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
        command=command("single/{run}/explain"),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"


rule figures_single:
    """Figures of a run, and its loop nests as pages."""
    input:
        layers=made("<results>/single/{run}/layers.jsonl", "single/{run}/figures"),
        summary=made("<results>/single/{run}/summary.json", "single/{run}/figures"),
        hardware=made(
            of_run("<results>/hardware/{hardware}/accelerator.json"),
            "single/{run}/figures",
        ),
        workload=made(
            of_run("<results>/workload/{workload}/{model}/workload.json"),
            "single/{run}/figures",
        ),
        due=due("single/{run}/figures"),
    output:
        *reported(SINGLE, "Runs", of_part(ONE_CORE_FILES, FIGURES)),
    log:
        "<logs>/single/{run}/figures.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        source=subpath(input.layers, parent=True),
        directory=subpath(output[0], parent=True),
    message:
        "{rule} {wildcards.run}"
    shell:
        "(python -m tilewright report {params.source:q} --only figures -o {params.directory:q} &&"
        " python -m tilewright --due {input.due:q} explain {params.source:q} --hardware {input.hardware:q} --workload {input.workload:q}"
        " --only figures -o {params.directory:q}) &> {log:q}"


rule paper_single:
    """Figures and tables of a run for a paper."""
    input:
        layers=made("<results>/single/{run}/layers.jsonl", "single/{run}/paper"),
        summary=made("<results>/single/{run}/summary.json", "single/{run}/paper"),
        hardware=made(
            of_run("<results>/hardware/{hardware}/accelerator.json"),
            "single/{run}/paper",
        ),
        workload=made(
            of_run("<results>/workload/{workload}/{model}/workload.json"),
            "single/{run}/paper",
        ),
        due=due("single/{run}/paper"),
    output:
        directory("<results>/single/{run}/report/paper"),
    log:
        "<logs>/single/{run}/paper.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        source=subpath(input.layers, parent=True),
        width=lambda wildcards: RUN_OF[wildcards.run].paper,
    message:
        "{rule} {wildcards.run}"
    shell:
        "(python -m tilewright report {params.source:q} --paper {params.width} -o {output:q} &&"
        " python -m tilewright --due {input.due:q} explain {params.source:q} --hardware {input.hardware:q} --workload {input.workload:q}"
        " --paper {params.width} -o {output:q}) &> {log:q}"


rule descriptions_together:
    """Descriptions of runs that share jobs, one after the other in one process."""
    input:
        due=due("batch/descriptions/{batch}"),
    output:
        "<results>/batch/descriptions/{batch}.done",
    log:
        "<logs>/batch/descriptions/{batch}.log",
    conda:
        "../../environment.yml"
    message:
        "{rule} {wildcards.batch}"
    shell:
        "python -m tilewright --due {input.due:q} &> {log:q}"


rule runs_together:
    """Runs that share a job: maps, checks and tables of one after the other, in one process."""
    input:
        descriptions=made(
            [f"<results>/{file}" for file in UNITS.batch_files("descriptions")],
            "batch/runs/{batch}",
        ),
        others=made(described_elsewhere, "batch/runs/{batch}"),
        due=due("batch/runs/{batch}"),
    output:
        "<results>/batch/runs/{batch}.done",
    log:
        "<logs>/batch/runs/{batch}.log",
    benchmark:
        "<logs>/batch/runs/{batch}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=240,
    message:
        "{rule} {wildcards.batch}"
    shell:
        "python -m tilewright --due {input.due:q} &> {log:q}"
