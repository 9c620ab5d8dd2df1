# From what people write to verified artifacts. The files are ancient inputs with a digest of what they say as a
# parameter: an edited comment reruns nothing. Artifacts are written under another name and renamed; `update` keeps
# the one before where a job fails, so that a mistake that is taken back reruns nothing either.


rule parse_hardware:
    """The accelerator that a hardware file describes, with the core files that it names."""
    input:
        file=ancient(written("hardware")),
        cores=ancient(core_files),
    output:
        update("<results>/hardware/{hardware}/accelerator.json"),
    log:
        "<logs>/hardware/{hardware}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        said=said_hardware,
        code=CODE["parse_hardware"],
    message:
        "{rule} {wildcards.hardware}"
    shell:
        "python -m tilewright parse hardware {input.file:q} -o {output:q} &> {log:q}"


rule parse_core:
    """One core of an accelerator of several; it depends on its own file alone."""
    input:
        file=ancient(written("hardware")),
        cores=ancient(core_files),
    output:
        update("<results>/hardware/{hardware}/core/{core}.json"),
    log:
        "<logs>/hardware/{hardware}/{core}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        said=lambda wildcards: SYSTEMS[wildcards.hardware].of_core(wildcards.core),
        code=CODE["parse_hardware"],
    message:
        "{rule} {wildcards.hardware} {wildcards.core}"
    shell:
        "python -m tilewright parse hardware {input.file:q} --core {wildcards.core:q} -o {output:q} &> {log:q}"


rule parse_workload:
    """The layers of a network, as a model profile reads them, and what of it is not costed."""
    input:
        file=ancient(written("workload")),
        model=ancient(model_files),
    output:
        workload=update("<results>/workload/{workload}/{model}/workload.json"),
        coverage=update("<results>/workload/{workload}/{model}/coverage.json"),
    log:
        "<logs>/workload/{workload}/{model}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        said=said("workload"),
        network_options=network_options,
        code=CODE["parse_workload"],
    message:
        "{rule} {wildcards.workload} {wildcards.model}"
    shell:
        "python -m tilewright parse workload {input.file:q} --model {wildcards.model:q} {params.network_options:q}"
        " -o {output.workload:q} --coverage {output.coverage:q} &> {log:q}"


rule parse_mapping:
    """The mapping constraints of a mapping file."""
    input:
        ancient(written("mapping")),
    output:
        update("<results>/mapping/{mapping}/mapping.json"),
    log:
        "<logs>/mapping/{mapping}.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        said=said("mapping"),
        code=CODE["parse_mapping"],
    message:
        "{rule} {wildcards.mapping}"
    shell:
        "python -m tilewright parse mapping {input:q} -o {output:q} &> {log:q}"
