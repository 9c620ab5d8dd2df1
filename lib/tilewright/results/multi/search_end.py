"""Text on the end of a search for plans: the limit that ended the search, and the value of this limit."""

from collections.abc import Mapping
from typing import Any

from tilewright.base.errors import count_of


def search_end(search: Mapping[str, Any]) -> str:
    """Part of a sentence that names the limit that ended a search, made from the field `search` of a `fusion.json`.

    If the limits of the call were divided among several searches (`searches` in the field is above 1), the field
    describes the search with the best plan. The text then says that the limit is only the share that this search had in
    the limit of the call. If the value of the limit is missing, as in files of earlier versions, the text has only the
    name of the limit. If more plans were evaluated than the limit allows, the text says why.
    """
    reason, evaluated = search["stopped_by"], search["plans"] + search["segments"]
    plans = f"{count_of(evaluated, 'plan')} of the network or a part of it"
    if reason == "interrupted":
        return "interrupted by Ctrl-C"
    searches = search.get("searches", 1)
    limited = "this search" if searches > 1 else "the call"
    key, text = {
        "count": ("nb_plans", f"ended after {plans}, because of the limit of {{:,}}"),
        "schedules": (
            "nb_schedules",
            f"ended after {count_of(search['schedules'], 'schedule')}, because of the limit of {{:,}}",
        ),
        "time_budget": ("fusion_time_budget_s", f"ended by the limit of {{:g}} seconds for {limited}"),
        "cpu_budget": ("fusion_cpu_budget_s", f"ended by the limit of {{:g}} CPU seconds for {limited}"),
    }.get(reason, ("", ""))
    if search.get(key) is None:
        return f"ended by {reason.replace('_', ' ')}"
    islands = search.get("islands", 1)
    shared = f", shared by {islands:,} islands" if islands > 1 else ""
    divided = f"; this limit is the share of this search: {searches:,} searches divide each limit of the call equally"
    share = divided if searches > 1 else ""
    is_beyond = reason == "count" and evaluated > search[key]
    beyond = "; initial plans and the last search for cores are evaluated even beyond this limit" if is_beyond else ""
    return f"{text.format(search[key])} ({key}){shared}{share}{beyond}"
