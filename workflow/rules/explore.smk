# Design spaces: shards of designs, each a file of its own, and the answer that all of them give.


wildcard_constraints:
    space=NAME_PATTERN,
    shard="[0-9]{5}",


SPACE_TARGETS = [
    *expand("<results>/space/{space}/explore.html", space=SPACES),
    *expand(
        "<results>/space/{space}/decision.html", space=SPACES if PLAN.decide else []
    ),
]


rule explore:
    """What some designs of a space cost on all its networks."""
    input:
        files=made(
            lambda wildcards: SPACES[wildcards.space].files,
            "space/{space}/shards/{shard}",
        ),
        due=due("space/{space}/shards/{shard}"),
    output:
        "<results>/space/{space}/shards/{shard}.parquet",
    log:
        "<logs>/space/{space}.{shard}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 1500 * attempt,
        runtime=60,
    params:
        space=lambda wildcards: PLAN.spaces[wildcards.space],
        folder=lambda wildcards: f"{RESULTS}/space/{wildcards.space}",
        number=lambda wildcards: int(wildcards.shard),
    message:
        "{rule} {wildcards.shard} of {wildcards.space}"
    shell:
        "python -m tilewright --due {input.due:q} explore {params.space:q} -o {params.folder:q} --shard {params.number} &> {log:q}"


rule answer:
    """Which designs of a space no other beats, as tables, figures and a page."""
    input:
        files=made(shard_files, "space/{space}/answer"),
        due=due("space/{space}/answer"),
    output:
        "<results>/space/{space}/space.csv",
        "<results>/space/{space}/space.parquet",
        "<results>/space/{space}/front.parquet",
        front=report(
            "<results>/space/{space}/front.csv",
            caption="../report/space.rst",
            category="Design spaces",
            labels={"space": "{space}", "shows": "front"},
        ),
        page=report(
            "<results>/space/{space}/explore.html",
            caption="../report/space.rst",
            category="Design spaces",
            labels={"space": "{space}", "shows": "everything"},
        ),
    log:
        "<logs>/space/{space}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=60,
    params:
        space=lambda wildcards: PLAN.spaces[wildcards.space],
        folder=lambda wildcards: f"{RESULTS}/space/{wildcards.space}",
        paper=SPACES_IN_PAPER,
    message:
        "{rule} of {wildcards.space}"
    shell:
        "python -m tilewright --due {input.due:q} explore {params.space:q} -o {params.folder:q} --gather {params.paper:q} &> {log:q}"


rule decide:
    """Which design of a space to build, what it gives up, and what would change the choice."""
    input:
        page=made("<results>/space/{space}/explore.html", "space/{space}/decide"),
        designs=made("<results>/space/{space}/space.parquet", "space/{space}/decide"),
        front=made("<results>/space/{space}/front.parquet", "space/{space}/decide"),
        files=made(shard_files, "space/{space}/decide"),
        due=due("space/{space}/decide"),
    output:
        "<results>/space/{space}/decision.md",
        page=report(
            "<results>/space/{space}/decision.html",
            caption="../report/decision.rst",
            category="Design spaces",
            labels={"space": "{space}", "shows": "decision"},
        ),
    log:
        "<logs>/space/{space}.decide.log",
    conda:
        "../../environment.yml"
    threads: 4
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=60,
    params:
        space=lambda wildcards: PLAN.spaces[wildcards.space],
        folder=lambda wildcards: f"{RESULTS}/space/{wildcards.space}",
        objective=PLAN.decide,
        paper=SPACES_IN_PAPER,
    message:
        "{rule} on a design of {wildcards.space}"
    shell:
        "python -m tilewright --due {input.due:q} decide {params.folder:q} --space {params.space:q}"
        " --objective {params.objective} --jobs {threads} {params.paper:q} &> {log:q}"
