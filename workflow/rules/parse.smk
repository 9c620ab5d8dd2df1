# From what people write to verified artifacts. The files are ancient inputs with a digest of what they say as a
# parameter: an edited comment reruns nothing. Artifacts are written under another name and renamed; `update` keeps
# the one before where a job fails, so that a mistake that is taken back reruns nothing either.


rule parse_hardware:
    """The accelerator that a hardware file describes, with the core files that it names."""
    input:
        file=ancient(written("hardware")),
        cores=ancient(core_files),
        due=due("hardware/{hardware}/accelerator"),
    output:
        update("<results>/hardware/{hardware}/accelerator.json"),
    log:
        "<logs>/hardware/{hardware}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        command=command("hardware/{hardware}/accelerator"),
    message:
        "{rule} {wildcards.hardware}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"


rule parse_core:
    """One core of an accelerator of several; it depends on its own file alone."""
    input:
        file=ancient(written("hardware")),
        cores=ancient(core_files),
        due=due("hardware/{hardware}/core/{core}"),
    output:
        update("<results>/hardware/{hardware}/core/{core}.json"),
    log:
        "<logs>/hardware/{hardware}/{core}.log",
    localrule: True
    conda:
        "../../environment.yml"
    message:
        "{rule} {wildcards.hardware} {wildcards.core}"
    shell:
        "python -m tilewright --due {input.due:q} parse hardware {input.file:q} --core {wildcards.core:q} -o {output:q} &> {log:q}"


rule parse_workload:
    """The layers of a network, as a model profile reads them, and what of it is not costed."""
    input:
        file=ancient(written("workload")),
        model=ancient(model_files),
        due=due("workload/{workload}/{model}/workload"),
    output:
        workload=update("<results>/workload/{workload}/{model}/workload.json"),
        coverage=update("<results>/workload/{workload}/{model}/coverage.json"),
    log:
        "<logs>/workload/{workload}/{model}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        command=command("workload/{workload}/{model}/workload"),
    message:
        "{rule} {wildcards.workload} {wildcards.model}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"


rule parse_mapping:
    """The mapping constraints of a mapping file."""
    input:
        file=ancient(written("mapping")),
        due=due("mapping/{mapping}/mapping"),
    output:
        update("<results>/mapping/{mapping}/mapping.json"),
    log:
        "<logs>/mapping/{mapping}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        command=command("mapping/{mapping}/mapping"),
    message:
        "{rule} {wildcards.mapping}"
    shell:
        "python -m tilewright --due {input.due:q} {params.command:q} &> {log:q}"
