# Complete fronts of design spaces: costs of all designs in parts, then who dominates whom.


wildcard_constraints:
    part="[0-9]{5}",


FRONT_TARGETS = expand("<results>/front/{space}/front.html", space=FRONTS)


rule family_costs:
    """What some designs of a space cost on all its networks, those that differ in little costed together."""
    input:
        files=made(
            lambda wildcards: FRONTS[wildcards.space].files,
            "front/{space}/costs/{part}",
        ),
        due=due("front/{space}/costs/{part}"),
    output:
        "<results>/front/{space}/costs/{part}.parquet",
    log:
        "<logs>/front/{space}.{part}.log",
    conda:
        "../../environment.yml"
    params:
        space=lambda wildcards: PLAN.fronts[wildcards.space],
        folder=lambda wildcards: f"{RESULTS}/front/{wildcards.space}",
        number=lambda wildcards: int(wildcards.part),
    message:
        "{rule} {wildcards.part} of {wildcards.space}"
    shell:
        "python -m tilewright --due {input.due:q} front {params.space:q} -o {params.folder:q} --part {params.number} &> {log:q}"


rule front:
    """The designs of a space that no other beats, all of them, with the certificate that there are no others."""
    input:
        files=made(part_files, "front/{space}/front"),
        due=due("front/{space}/front"),
    output:
        "<results>/front/{space}/certificate.parquet",
        "<results>/front/{space}/front.parquet",
        front=report(
            "<results>/front/{space}/front.csv",
            caption="../report/front.rst",
            category="Complete fronts",
            labels={"space": "{space}", "shows": "front"},
        ),
        page=report(
            "<results>/front/{space}/front.html",
            caption="../report/front.rst",
            category="Complete fronts",
            labels={"space": "{space}", "shows": "page"},
        ),
    log:
        "<logs>/front/{space}.log",
    conda:
        "../../environment.yml"
    threads: 4
    params:
        space=lambda wildcards: PLAN.fronts[wildcards.space],
        folder=lambda wildcards: f"{RESULTS}/front/{wildcards.space}",
        paper=SPACES_IN_PAPER,
    message:
        "{rule} of {wildcards.space}"
    shell:
        "python -m tilewright --due {input.due:q} front {params.space:q} -o {params.folder:q} --gather"
        " --jobs {threads} {params.paper:q} &> {log:q}"
