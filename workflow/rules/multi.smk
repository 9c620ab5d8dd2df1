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
        mapping=made(of_multi_run(MAPPING), "multi/{run}/split"),
        due=due("multi/{run}/split"),
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
        network_options=lambda wildcards: list(
            PLAN.network_options.get(MULTI_RUN_OF[wildcards.run].workload, ())
        ),
        arguments=arguments("split"),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} split --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.network_options:q} {params.arguments:q} -o {output:q} &> {log:q}"


rule parse_split_multi:
    """The layers of the split network."""
    input:
        files=made("<results>/multi/{run}/split.onnx", "multi/{run}/workload"),
        due=due("multi/{run}/workload"),
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
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} parse workload {input.files:q} --name {params.name:q} --model {params.model:q}"
        " {params.network_options:q}"
        " -o {output.workload:q} --coverage {output.coverage:q} &> {log:q}"


rule fuse_island_multi:
    """A part of the search of a plan with islands: its opening, or a round of one island."""
    input:
        hardware=made(of_multi_run(ACCELERATOR), "multi/{run}/plan/islands/{part}"),
        workload=made(multi_workload, "multi/{run}/plan/islands/{part}"),
        mapping=made(of_multi_run(MAPPING), "multi/{run}/plan/islands/{part}"),
        states=made(island_states(""), "multi/{run}/plan/islands/{part}"),
        due=due("multi/{run}/plan/islands/{part}"),
    output:
        state=update("<results>/multi/{run}/plan/islands/{part}.json"),
    log:
        "<logs>/multi/{run}/islands/{part}.log",
    benchmark:
        "<logs>/multi/{run}/islands/{part}.tsv"
    wildcard_constraints:
        run=runs_that(
            PLAN.multi_runs, lambda run: run.fuses and run.island_counts[0] > 1
        ),
        part=r"opening|[0-9]+\.[0-9]+",
    conda:
        "../../environment.yml"
    threads: lambda wildcards: 4 if wildcards.part == "opening" else 1
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=120,
    params:
        arguments=arguments("fuse"),
        directory=lambda wildcards: f"{RESULTS}/multi/{wildcards.run}/plan",
    message:
        "{rule} {wildcards.run} {wildcards.part}"
    shell:
        "python -m tilewright --due {input.due:q} fuse --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.arguments:q} --part {wildcards.part:q} --no-run --jobs {threads}"
        " -o {params.directory:q} &> {log:q}"


rule fuse_multi:
    """How the network is fused: stacks, tiles, parts, cores and rules of the schedule, searched by count."""
    input:
        hardware=made(of_multi_run(ACCELERATOR), "multi/{run}/plan/fuse"),
        workload=made(multi_workload, "multi/{run}/plan/fuse"),
        mapping=made(of_multi_run(MAPPING), "multi/{run}/plan/fuse"),
        states=made(island_states("answer"), "multi/{run}/plan/fuse"),
        due=due("multi/{run}/plan/fuse"),
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
        part=lambda wildcards, input: ["--part", "answer"] if input.states else [],
        directory=subpath(output.plan, parent=True),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} fuse --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.arguments:q} {params.part:q} --no-run --jobs {threads}"
        " -o {params.directory:q} &> {log:q}"


rule cns_multi:
    """The network cut into computation nodes, and what flows between them."""

    # The mapping as written, so that what is wrong with it is told by line.
    input:
        hardware=ancient(written_by("hardware")),
        cores=ancient(core_files_of_run),
        workload=made(multi_workload, "multi/{run}/cns"),
        mapping=ancient(mapping_to_cut),
        plan=made(plan_to_cut, "multi/{run}/cns"),
        due=due("multi/{run}/cns"),
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
        arguments=arguments("cns"),
        plan=planned,
        directory=subpath(output.columns, parent=True),
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} cns --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} {params.plan:q} {params.arguments:q} -o {params.directory:q} &> {log:q}"


rule cost_multi:
    """The cost of every distinct computation node on one core."""
    input:
        hardware=ancient(written_by("hardware")),
        cores=ancient(core_files_of_run),
        core=made(
            of_multi_run("<results>/hardware/{hardware}/core/{core}.json"),
            "multi/{run}/cost/{core}",
        ),
        workload=made(multi_workload, "multi/{run}/cost/{core}"),
        mapping=made(mapping_of_run, "multi/{run}/cost/{core}"),
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/cost/{core}"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/cost/{core}"),
        due=due("multi/{run}/cost/{core}"),
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
        arguments=arguments("cost"),
        directory=subpath(input.columns, parent=True),
    message:
        "{rule} {wildcards.run} {wildcards.core}"
    shell:
        "python -m tilewright --due {input.due:q} cost --hardware {input.hardware:q} --core {wildcards.core:q} --cns {params.directory:q}"
        " --workload {input.workload:q} --mapping {input.mapping:q} {params.arguments:q} --jobs {threads}"
        " -o {output:q} &> {log:q}"


rule allocate_multi:
    """Which core runs what: the best allocations that a genetic algorithm finds."""
    input:
        hardware=made(of_multi_run(ACCELERATOR), "multi/{run}/allocate"),
        workload=made(multi_workload, "multi/{run}/allocate"),
        mapping=made(mapping_of_run, "multi/{run}/allocate"),
        plan=made(plan_of_run, "multi/{run}/allocate"),
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/allocate"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/allocate"),
        costs=made(cost_tables, "multi/{run}/allocate"),
        due=due("multi/{run}/allocate"),
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
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} allocate --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} --cns {params.directory:q} --costs {params.directory:q}/cost"
        " {params.plan:q} {params.arguments:q} --jobs {threads} -o {params.directory:q} &> {log:q}"


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
        hardware=made(of_multi_run(ACCELERATOR), "multi/{run}/schedule"),
        workload=made(multi_workload, "multi/{run}/schedule"),
        mapping=made(mapping_of_run, "multi/{run}/schedule"),
        plan=made(plan_of_run, "multi/{run}/schedule"),
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/schedule"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/schedule"),
        costs=made(cost_tables, "multi/{run}/schedule"),
        allocation=made("<results>/multi/{run}/allocation.json", "multi/{run}/schedule"),
        baseline=made(baseline, "multi/{run}/schedule"),
        due=due("multi/{run}/schedule"),
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
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} schedule --hardware {input.hardware:q} --workload {input.workload:q}"
        " --mapping {input.mapping:q} --cns {params.directory:q} --costs {params.directory:q}/cost"
        " --core-allocation {input.allocation:q} {params.baseline:q} {params.plan:q} {params.arguments:q} -o {params.directory:q} &> {log:q}"


rule check_multi:
    """Physical invariants of a schedule, verified on the artifacts of its run."""
    input:
        hardware=made(of_multi_run(ACCELERATOR), "multi/{run}/check"),
        workload=made(multi_workload, "multi/{run}/check"),
        mapping=made(mapping_of_run, "multi/{run}/check"),
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/check"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/check"),
        costs=made(cost_tables, "multi/{run}/check"),
        schedule=made("<results>/multi/{run}/schedule.npz", "multi/{run}/check"),
        summary=made("<results>/multi/{run}/summary.json", "multi/{run}/check"),
        due=due("multi/{run}/check"),
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
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} check {params.directory:q} --hardware {input.hardware:q}"
        " --workload {input.workload:q} --mapping {input.mapping:q} -o {output:q} &> {log:q}"


rule report_multi:
    """Tables, traces and the interactive schedule of a run."""
    input:
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/report"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/report"),
        schedule=made("<results>/multi/{run}/schedule.npz", "multi/{run}/report"),
        summary=made("<results>/multi/{run}/summary.json", "multi/{run}/report"),
        due=due("multi/{run}/report"),
    output:
        *reported(MULTI, "Runs of several cores", of_part(SEVERAL_CORES_FILES, TABLES)),
    log:
        "<logs>/multi/{run}/report.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_mb(1500, 500),
        runtime=60,
    params:
        source=subpath(input.schedule, parent=True),
        directory=subpath(output[0], parent=True),
        undrawn=lambda wildcards, output: undrawn(
            Path(output[0]).parent,
            MULTI_RUN_OF[wildcards.run],
            names_of(SEVERAL_CORES_FILES, FIGURES),
        ),
    message:
        "{rule} {wildcards.run}"
    shell:
        "rm -rf {params.undrawn:q}; "
        "python -m tilewright --due {input.due:q} report {params.source:q} --only tables -o {params.directory:q} &> {log:q}"


rule figures_multi:
    """Figures of a run."""
    input:
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/figures"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/figures"),
        costs=made(cost_tables, "multi/{run}/figures"),
        generations=made("<results>/multi/{run}/generations.csv", "multi/{run}/figures"),
        pareto=made("<results>/multi/{run}/pareto.csv", "multi/{run}/figures"),
        schedule=made("<results>/multi/{run}/schedule.npz", "multi/{run}/figures"),
        summary=made("<results>/multi/{run}/summary.json", "multi/{run}/figures"),
        due=due("multi/{run}/figures"),
    output:
        *reported(MULTI, "Runs of several cores", of_part(SEVERAL_CORES_FILES, FIGURES)),
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
    message:
        "{rule} {wildcards.run}"
    shell:
        "python -m tilewright --due {input.due:q} report {params.source:q} {params.arguments:q} --only figures"
        " -o {params.directory:q} &> {log:q}"


rule paper_multi:
    """Figures and tables of a run for a paper."""
    input:
        graph=made("<results>/multi/{run}/cn_graph.json", "multi/{run}/paper"),
        columns=made("<results>/multi/{run}/cn_graph.npz", "multi/{run}/paper"),
        costs=made(cost_tables, "multi/{run}/paper"),
        generations=made("<results>/multi/{run}/generations.csv", "multi/{run}/paper"),
        pareto=made("<results>/multi/{run}/pareto.csv", "multi/{run}/paper"),
        schedule=made("<results>/multi/{run}/schedule.npz", "multi/{run}/paper"),
        summary=made("<results>/multi/{run}/summary.json", "multi/{run}/paper"),
        due=due("multi/{run}/paper"),
    output:
        directory("<results>/multi/{run}/report/paper"),
    log:
        "<logs>/multi/{run}/paper.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory_mb(1500, 500),
        runtime=60,
    params:
        arguments=arguments("report"),
        width=lambda wildcards: MULTI_RUN_OF[wildcards.run].paper,
        source=subpath(input.schedule, parent=True),
    message:
        "{rule} {wildcards.run}"
    shell:
        "(python -m tilewright report {params.source:q} {params.arguments:q} --paper {params.width} -o {output:q} &&"
        " python -m tilewright --due {input.due:q} explain {params.source:q} --paper {params.width} -o {output:q})"
        " &> {log:q}"


rule draw_system:
    """The cores and links of an accelerator of several cores."""
    input:
        files=made(
            "<results>/hardware/{hardware}/accelerator.json",
            "hardware/{hardware}/system",
        ),
        due=due("hardware/{hardware}/system"),
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
    message:
        "{rule} {wildcards.hardware}"
    shell:
        "python -m tilewright --due {input.due:q} draw {input.files:q} -o {output:q} &> {log:q}"
