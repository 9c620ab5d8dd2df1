# Hardware side by side: what each core looks like, and which are worth their cost.


rule pareto:
    """The runs of each network that no other run beats in energy, latency and area."""
    input:
        files=made(SUMMARIES, "pareto"),
        due=due("pareto"),
    output:
        report(
            expand("<results>/pareto/{workload}.svg", workload=WORKLOADS),
            caption="../report/pareto.rst",
            category="Pareto",
        ),
        csv=report(
            "<results>/pareto.csv",
            caption="../report/pareto.rst",
            category="Pareto",
        ),
    log:
        "<logs>/pareto.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        unfinished=UNFINISHED,
        figures=lambda wildcards, output: str(Path(output.csv).parent / "pareto"),
    message:
        "{rule} of all runs"
    shell:
        # Figures of networks that are in no run any more go. The verb with all runs is in the order: a command line has
        # room for some thousands.
        "rm -f {params.figures:q}/*.svg {params.figures:q}/*.png; "
        "python -m tilewright --due {input.due:q} &> {log:q}"


rule draw_hardware:
    """The memory hierarchy of a core."""
    input:
        files=made(
            "<results>/hardware/{hardware}/accelerator.json",
            "hardware/{hardware}/hierarchy",
        ),
        due=due("hardware/{hardware}/hierarchy"),
    output:
        report(
            "<results>/hardware/{hardware}/hierarchy.svg",
            caption="../report/hierarchy.rst",
            category="Hardware",
            labels={"hardware": "{hardware}", "shows": "memory hierarchy"},
        ),
    log:
        "<logs>/hardware/{hardware}.draw.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        command=command("hardware/{hardware}/hierarchy"),
    message:
        "{rule} {wildcards.hardware}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"
