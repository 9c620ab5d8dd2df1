# Hardware side by side: what each core looks like, and which are worth their cost.


rule pareto:
    """The runs of each network that no other run beats in energy, latency and area."""
    input:
        summaries=SUMMARIES,
        hardware=expand(
            "results/hardware/{hardware}/accelerator.json",
            hardware=[*HARDWARE, *SYSTEMS],
        ),
    output:
        report(
            expand("results/pareto/{workload}.svg", workload=WORKLOADS),
            caption="../report/pareto.rst",
            category="Pareto",
        ),
        csv=report(
            "results/pareto.csv",
            caption="../report/pareto.rst",
            category="Pareto",
        ),
    log:
        "logs/pareto.log",
    conda:
        "../../environment.yml"
    params:
        runs=[str(Path(summary).parent) for summary in SUMMARIES],
        hardware=expand(
            "--hardware=results/hardware/{hardware}/accelerator.json",
            hardware=[*HARDWARE, *SYSTEMS],
        ),
        code=CODE["pareto"],
    shell:
        "python -m tilewright pareto {params.runs:q} {params.hardware:q} --csv {output.csv:q}"
        " --figures results/pareto &> {log:q}"


rule draw_hardware:
    """The memory hierarchy of a core."""
    input:
        "results/hardware/{hardware}/accelerator.json",
    output:
        report(
            "results/hardware/{hardware}/hierarchy.svg",
            caption="../report/hierarchy.rst",
            category="Hardware",
            labels={"hardware": "{hardware}", "shows": "memory hierarchy"},
        ),
    log:
        "logs/hardware/{hardware}.draw.log",
    conda:
        "../../environment.yml"
    params:
        code=CODE["draw"],
    shell:
        "python -m tilewright draw {input:q} -o {output:q} &> {log:q}"
