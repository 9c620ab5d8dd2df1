# What the rules of the multi-core flow share: its targets, and what a run stands for.

ACCELERATOR = "<results>/hardware/{hardware}/accelerator.json"
MAPPING = "<results>/mapping/{mapping}/mapping.json"
# Every artifact is a target, so that one that was damaged and removed comes back.
MULTI_TARGETS = [
    *expand(
        "<results>/multi/{run}/{artifact}",
        run=MULTI_RUNS,
        artifact=artifacts(MULTI),
    ),
    *(
        f"<results>/multi/{run.name}/cost/{core}.jsonl"
        for run in PLAN.multi_runs
        for core in SYSTEMS[run.hardware].core_names
    ),
    *expand(
        "<results>/multi/{run}/report/{figure}",
        run=REPORTED_MULTI_RUNS,
        figure=names_of(SEVERAL_CORES_FILES, TABLES),
    ),
    *expand(
        "<results>/multi/{run}/report/{figure}",
        run=[run for run in REPORTED_MULTI_RUNS if MULTI_RUN_OF[run].figures],
        figure=names_of(SEVERAL_CORES_FILES, FIGURES),
    ),
    *expand(
        f"<results>/multi/{{run}}/{PAPER}",
        run=[run for run in REPORTED_MULTI_RUNS if MULTI_RUN_OF[run].paper],
    ),
    *(
        f"<results>/multi/{run.name}/plan/{name}"
        for run in PLAN.multi_runs
        for name in STEPS["fuse"].writes
        if run.fuses
    ),
    *expand("<results>/hardware/{hardware}/system.svg", hardware=SYSTEMS),
    *expand(
        "<results>/multi/{run}/exports",
        run=[run.name for run in PLAN.multi_runs if run.stages.exports],
    ),
]


def of_multi_run(pattern):
    """Input function: the path of an artifact that a run of several cores needs."""
    return lambda wildcards: pattern.format(
        hardware=MULTI_RUN_OF[wildcards.run].hardware,
        mapping=MULTI_RUN_OF[wildcards.run].mapping,
        **{"core": wildcards.core} if hasattr(wildcards, "core") else {},
    )


def mapping_of_run(wildcards):
    """Input function: the mapping of a run, as it was parsed, or as the search of a plan wrote it."""
    if MULTI_RUN_OF[wildcards.run].fuses:
        return f"<results>/multi/{wildcards.run}/plan/mapping.yaml"
    return of_multi_run(MAPPING)(wildcards)


def mapping_to_cut(wildcards):
    """Input function: the mapping by which a network is cut: as written, so that what is wrong with it is told by line."""
    if MULTI_RUN_OF[wildcards.run].fuses:
        return mapping_of_run(wildcards)
    return written_by("mapping")(wildcards)


def plan_of_run(wildcards):
    """Input function: the plan that says how a run is scheduled, if one was searched."""
    name = MULTI_RUN_OF[wildcards.run].plan_of
    return [f"<results>/multi/{name}/plan/fusion.json"] if name else []


def plan_to_cut(wildcards):
    """Input function: the plan that says how the network of a run is cut, if one was searched."""
    return plan_of_run(wildcards) if MULTI_RUN_OF[wildcards.run].fuses else []


def island_states(part):
    """Input function: the states of islands that a part of the search of a plan reads; none without islands. `part` is
    its name, or "" for the one in the wildcards."""

    def states(wildcards):
        run = MULTI_RUN_OF[wildcards.run]
        before = run.island_parts_before(part or wildcards.part)
        folder = f"<results>/multi/{wildcards.run}/plan/islands"
        return [f"{folder}/{name}.json" for name in before]

    return states


def planned(wildcards, input):
    """Param function: the plan as an option of a verb."""
    return ["--plan", input.plan[0]] if input.plan else []


def core_files_of_run(wildcards):
    """Input function: the core files of the accelerator of a run."""
    return [str(path) for path in system_of(wildcards).path_of.values()]


def multi_workload(wildcards):
    """Input function: the network of a run, split where it says so; a run is compared with the same network."""
    return f"<results>/{UNITS.workload_of(MULTI_RUN_OF[wildcards.run])}.json"


def cost_tables(wildcards):
    """Input function: the cost tables of all distinct cores of a run."""
    system = SYSTEMS[MULTI_RUN_OF[wildcards.run].hardware]
    return expand(
        "<results>/multi/{run}/cost/{core}.jsonl",
        run=wildcards.run,
        core=system.core_names,
    )


def baseline(wildcards):
    """Input function: the result that a run is compared with, if there is one."""
    companion = MULTI_RUN_OF[wildcards.run].companion
    if companion is None:
        return []
    return [
        f"<results>/multi/{companion.name}/{name}"
        for name in ("allocation.json", "summary.json")
    ]


def written_by(kind):
    """Input function: the file that a person wrote of a kind, of a run of several cores."""
    return lambda wildcards: PLAN.files[kind][
        getattr(MULTI_RUN_OF[wildcards.run], kind)
    ]


def arguments(verb):
    """Param function: the settings of a run that a verb takes, as its command line takes them."""
    return lambda wildcards: MULTI_RUN_OF[wildcards.run].arguments(verb)


def system_of(wildcards):
    """What the hardware files of a run say."""
    return SYSTEMS[MULTI_RUN_OF[wildcards.run].hardware]


def memory_mb(least, bytes_each):
    """Resource function: memory that grows with the nodes and edges of the graph, once that is there."""
    return lambda wildcards, input, attempt: attempt * (
        least + bytes_each * graph_size(input.graph) // 10**6
    )
