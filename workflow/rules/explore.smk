# Design spaces: shards of designs, each a file of its own, and the answer that all of them give.


wildcard_constraints:
    space=NAME_PATTERN,
    shard="[0-9]{5}",


SPACE_TARGETS = expand("<results>/space/{space}/explore.html", space=SPACES)


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
    message:
        "{rule} of {wildcards.space}"
    shell:
        "python -m tilewright --due {input.due:q} explore {params.space:q} -o {params.folder:q} --gather &> {log:q}"
