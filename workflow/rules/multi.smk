# The multi-core flow: a network cut into computation nodes, their cost on every distinct core, the search for an
# allocation, its schedule. Steps that depend on a part of the accelerator alone read its files, as ancient inputs with a
# digest of that part as a parameter: the cost table of one core does not depend on the others. The artifact of the
# accelerator would not do: behind an ancient file that another job makes anew, Snakemake looks at no parameters.


rule split_multi:
    """The network with the layers split whose weights are too large for the cores."""
    input:
        hardware=ancient(written_by("hardware")),
        cores=ancient(core_files_of_run),
        workload=ancient(written_by("workload")),
        mapping=of_multi_run(MAPPING),
    output:
        update("<results>/multi/{run}/split.onnx"),
    log:
        "<logs>/multi/{run}/split.log",
    wildcard_constraints:
        run=runs_that(PLAN.multi_runs, lambda run: run.splits and not run.base),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        said_workload=said_by("workload"),
        said_hardware=lambda wildcards: system_of(wildcards).of_graph,
        network_options=lambda wildcards: list(
            PLAN.network_options.get(MULTI_RUN_OF[wildcards.run].workload, ())
        ),
        arguments=arguments("split"),
        code=CODE["split"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright split --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.network_options:q} {params.arguments:q} -o {output:q} &> {log:q}"


rule parse_split_multi:
    """The layers of the split network."""
    input:
        "<results>/multi/{run}/split.onnx",
    output:
        workload=update("<results>/multi/{run}/workload.json"),
        coverage=update("<results>/multi/{run}/coverage.json"),
    log:
        "<logs>/multi/{run}/parse_split.log",
    wildcard_constraints:
        run=runs_that(PLAN.multi_runs, lambda run: run.splits and not run.base),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        model=MULTI_MODEL,
        name=lambda wildcards: MULTI_RUN_OF[wildcards.run].workload,
        network_options=lambda wildcards: list(
            PLAN.network_options.get(MULTI_RUN_OF[wildcards.run].workload, ())
        ),
        code=CODE["parse_workload"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright parse workload {input:q} --name {params.name:q} --model {params.model:q}"
        " {params.network_options:q}"
        " -o {output.workload:q} --coverage {output.coverage:q} &> {log:q}"


rule fuse_multi:
    """How the network is fused: stacks, tiles, parts, cores and rules of the schedule, searched by count."""
    input:
        hardware=of_multi_run(ACCELERATOR),
        workload=multi_workload,
        mapping=of_multi_run(MAPPING),
    output:
        update("<results>/multi/{run}/plan/fusion.csv"),
        update("<results>/multi/{run}/plan/mapping.yaml"),
        report(
            update("<results>/multi/{run}/plan/fusion.html"),
            caption="../report/multi_fusion.rst",
            category="Runs of several cores",
            subcategory="{run}",
            labels={"run": "{run}", "shows": "how it is fused, and why"},
        ),
        plan=update("<results>/multi/{run}/plan/fusion.json"),
    log:
        "<logs>/multi/{run}/fuse.log",
    benchmark:
        "<logs>/multi/{run}/fuse.tsv"
    wildcard_constraints:
        run=runs_that(PLAN.multi_runs, lambda run: run.fuses),
    conda:
        "../../environment.yml"
    threads: 4
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=120,
    params:
        arguments=arguments("fuse"),
        directory=subpath(output.plan, parent=True),
        code=CODE["fuse"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright fuse --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.arguments:q} --no-run --jobs {threads}"
        " -o {params.directory:q} &> {log:q}"


rule cns_multi:
    """The network cut into computation nodes, and what flows between them."""

    # The mapping as written, so that what is wrong with it is told by line.
    input:
        hardware=ancient(written_by("hardware")),
        cores=ancient(core_files_of_run),
        workload=multi_workload,
        mapping=ancient(mapping_to_cut),
        plan=plan_to_cut,
    output:
        update("<results>/multi/{run}/cn_graph.json"),
        columns=update("<results>/multi/{run}/cn_graph.npz"),
    log:
        "<logs>/multi/{run}/cns.log",
    benchmark:
        "<logs>/multi/{run}/cns.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=60,
    params:
        said_hardware=lambda wildcards: system_of(wildcards).of_graph,
        said_mapping=said_by("mapping"),
        arguments=arguments("cns"),
        plan=planned,
        directory=subpath(output.columns, parent=True),
        code=CODE["cns"],
        stage_code=stage_code_of_multi,
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright cns --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.plan:q} {params.arguments:q} -o {params.directory:q} &> {log:q}"


rule cost_multi:
    """The cost of every distinct computation node on one core."""
    input:
        hardware=ancient(written_by("hardware")),
        cores=ancient(core_files_of_run),
        core=of_multi_run("<results>/hardware/{hardware}/core/{core}.json"),
        workload=multi_workload,
        mapping=mapping_of_run,
        graph="<results>/multi/{run}/cn_graph.json",
        columns="<results>/multi/{run}/cn_graph.npz",
    output:
        update("<results>/multi/{run}/cost/{core}.jsonl"),
    log:
        "<logs>/multi/{run}/cost/{core}.log",
    benchmark:
        "<logs>/multi/{run}/cost/{core}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory_mb(1000, 200),
        runtime=60,
    params:
        said_hardware=lambda wildcards: system_of(wildcards).of_cost_table(
            wildcards.core
        ),
        arguments=arguments("cost"),
        directory=subpath(input.columns, parent=True),
        code=CODE["cost"],
        stage_code=stage_code_of_multi,
    message:
        "{rule} {wildcards.run} {wildcards.core}"
    shell:
        "python -m tilewright cost --hardware {input.hardware:q} --core {wildcards.core:q} --cns {params.directory:q}"
        " --workload {input.workload:q} --mapping {input.mapping:q} {params.arguments:q} --threads {threads}"
        " -o {output:q} &> {log:q}"


rule allocate_multi:
    """Which core runs what: the best allocations that a genetic algorithm finds."""
    input:
        hardware=of_multi_run(ACCELERATOR),
        workload=multi_workload,
        mapping=mapping_of_run,
        plan=plan_of_run,
        graph="<results>/multi/{run}/cn_graph.json",
        columns="<results>/multi/{run}/cn_graph.npz",
        costs=cost_tables,
    output:
        update("<results>/multi/{run}/generations.csv"),
        update("<results>/multi/{run}/pareto.csv"),
        update("<results>/multi/{run}/mapping.yaml"),
        allocation=update("<results>/multi/{run}/allocation.json"),
    log:
        "<logs>/multi/{run}/allocate.log",
    benchmark:
        "<logs>/multi/{run}/allocate.tsv"
    wildcard_constraints:
        run=runs_that(PLAN.multi_runs, lambda run: not run.stages.exports),
    conda:
        "../../environment.yml"
    threads: 4
    resources:
        mem_mb=memory_mb(1500, 700),
        runtime=60,
    params:
        arguments=arguments("allocate"),
        plan=planned,
        directory=subpath(output.allocation, parent=True),
        code=CODE["allocate"],
        stage_code=stage_code_of_multi,
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright allocate --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} --cns {params.directory:q} --costs {params.directory:q}/cost"
        " {params.plan:q} {params.arguments:q} --threads {threads} -o {params.directory:q} &> {log:q}"


use rule allocate_multi as allocate_and_export_multi with:
    output:
        update("<results>/multi/{run}/generations.csv"),
        update("<results>/multi/{run}/pareto.csv"),
        update("<results>/multi/{run}/mapping.yaml"),
        allocation=update("<results>/multi/{run}/allocation.json"),
        exports=directory("<results>/multi/{run}/exports"),
    wildcard_constraints:
        run=runs_that(PLAN.multi_runs, lambda run: run.stages.exports),


rule schedule_multi:
    """What runs when on which core, which data moves when, and what that costs."""
    input:
        hardware=of_multi_run(ACCELERATOR),
        workload=multi_workload,
        mapping=mapping_of_run,
        plan=plan_of_run,
        graph="<results>/multi/{run}/cn_graph.json",
        columns="<results>/multi/{run}/cn_graph.npz",
        costs=cost_tables,
        allocation="<results>/multi/{run}/allocation.json",
        baseline=baseline,
    output:
        schedule=update("<results>/multi/{run}/schedule.npz"),
        summary=update("<results>/multi/{run}/summary.json"),
    log:
        "<logs>/multi/{run}/schedule.log",
    benchmark:
        "<logs>/multi/{run}/schedule.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_mb(1500, 500),
        runtime=60,
    params:
        arguments=arguments("schedule"),
        plan=planned,
        baseline=lambda wildcards, input: (
            ["--baseline", str(Path(input.baseline[0]).parent)]
            if input.baseline
            else []
        ),
        directory=subpath(output.schedule, parent=True),
        code=CODE["schedule"],
        stage_code=stage_code_of_multi,
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright schedule --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} --cns {params.directory:q} --costs {params.directory:q}/cost"
        " --allocation {input.allocation:q} {params.baseline:q} {params.plan:q} {params.arguments:q} -o {params.directory:q} &> {log:q}"


rule check_multi:
    """Physical invariants of a schedule, verified on the artifacts of its run."""
    input:
        hardware=of_multi_run(ACCELERATOR),
        workload=multi_workload,
        mapping=mapping_of_run,
        graph="<results>/multi/{run}/cn_graph.json",
        columns="<results>/multi/{run}/cn_graph.npz",
        costs=cost_tables,
        schedule="<results>/multi/{run}/schedule.npz",
        summary="<results>/multi/{run}/summary.json",
    output:
        update("<results>/multi/{run}/checks.json"),
    log:
        "<logs>/multi/{run}/check.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_mb(1500, 500),
        runtime=60,
    params:
        directory=subpath(input.schedule, parent=True),
        code=CODE["check_multi"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright check {params.directory:q} --hardware {input.hardware:q}"
        " --workload {input.workload:q} --mapping {input.mapping:q} -o {output:q} &> {log:q}"


rule report_multi:
    """Tables, traces and the interactive schedule of a run."""
    input:
        graph="<results>/multi/{run}/cn_graph.json",
        columns="<results>/multi/{run}/cn_graph.npz",
        schedule="<results>/multi/{run}/schedule.npz",
        summary="<results>/multi/{run}/summary.json",
    output:
        *[
            report(
                f"<results>/multi/{{run}}/report/{figure}",
                caption=f"../report/{caption}.rst",
                category="Runs of several cores",
                subcategory="{run}",
                labels={"run": "{run}", "shows": shows},
            )
            for figure, (caption, shows) in MULTI_TABLES.items()
        ],
        trace="<results>/multi/{run}/report/trace.json",
    log:
        "<logs>/multi/{run}/report.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_mb(1500, 500),
        runtime=60,
    params:
        source=subpath(input.schedule, parent=True),
        directory=subpath(output.trace, parent=True),
        undrawn=lambda wildcards, output: undrawn(
            Path(output.trace).parent,
            MULTI_RUN_OF[wildcards.run],
            MULTI_FIGURE_FILES,
        ),
        code=CODE["report_multi"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "rm -f {params.undrawn:q}; "
        "python -m tilewright report {params.source:q} --only tables -o {params.directory:q} &> {log:q}"


rule figures_multi:
    """Figures of a run."""
    input:
        graph="<results>/multi/{run}/cn_graph.json",
        columns="<results>/multi/{run}/cn_graph.npz",
        costs=cost_tables,
        generations="<results>/multi/{run}/generations.csv",
        pareto="<results>/multi/{run}/pareto.csv",
        schedule="<results>/multi/{run}/schedule.npz",
        summary="<results>/multi/{run}/summary.json",
    output:
        *[
            report(
                f"<results>/multi/{{run}}/report/{figure}",
                caption=f"../report/{caption}.rst",
                category="Runs of several cores",
                subcategory="{run}",
                labels={"run": "{run}", "shows": shows},
            )
            for figure, (caption, shows) in MULTI_FIGURES.items()
        ],
    log:
        "<logs>/multi/{run}/figures.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_mb(1500, 500),
        runtime=60,
    params:
        arguments=arguments("report"),
        source=subpath(input.schedule, parent=True),
        directory=subpath(output[0], parent=True),
        code=CODE["figures_multi"],
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright report {params.source:q} {params.arguments:q} --only figures"
        " -o {params.directory:q} &> {log:q}"


rule draw_system:
    """The cores and links of an accelerator of several cores."""
    input:
        "<results>/hardware/{hardware}/accelerator.json",
    output:
        report(
            "<results>/hardware/{hardware}/system.svg",
            caption="../report/system.rst",
            category="Hardware",
            labels={"hardware": "{hardware}", "shows": "cores and links"},
        ),
    log:
        "<logs>/hardware/{hardware}.draw_system.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=CODE["draw"],
    message:
        "{rule} {wildcards.hardware}"
    shell:
        "python -m tilewright draw {input:q} -o {output:q} &> {log:q}"
