#!/usr/bin/env bash
# What `make run` does: make what is out of date or damaged, then the report, then the summary on the terminal.
# usage: workflow/run.sh CONFIG [SNAKEMAKE OPTION ...]
set -uo pipefail
config=$1
shift

# Ctrl-C ends all of it soon: what runs in the foreground would be waited for, so what takes long does not run there.
child=
started_by() {
  local one
  for one in $(ps -o pid= --ppid "$1" 2>/dev/null || pgrep -P "$1" 2>/dev/null); do
    started_by "$one"
    echo "$one"
  done
}
interrupted() {
  trap '' INT TERM
  if [[ -n $child ]]; then
    kill -INT "$child" 2>/dev/null
    for _ in {1..12}; do
      kill -0 "$child" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL $(started_by "$child") "$child" 2>/dev/null
    wait "$child" 2>/dev/null
  fi
  echo "interrupted: what was finished is kept; run the same command again to continue" >&2
  exit 130
}
trap interrupted INT TERM
interruptible() {
  # A shell has what runs in its background ignore Ctrl-C.
  python -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])' "$@" &
  child=$!
  wait "$child"
  local code=$?
  child=
  return $code
}

# A wrong configuration is told in its own words, once, before anything else happens.
places=$(python -m tilewright results "$config") || exit
results=${places%%$'\n'*}
logs=${places#*$'\n'}
report=$results/report.html
ending=$logs/.ending
unfinished=$logs/.unfinished.json

# Questions to snakemake compute nothing, so there is nothing to report.
for option in "$@"; do
  case $option in
    -n | -np | -pn | --dry-run | --dryrun | --unlock | --lint | --dag | --rulegraph | --filegraph)
      exec snakemake --configfile "$config" "$@"
      ;;
  esac
done

mkdir -p "$logs/space"

# One run at a time in a folder of results; other configurations have other ones, and the store may be shared. Whatever
# the run starts keeps descriptor 9 open: the lock is free when all of it has ended, however it ended. Snakemake's own
# lock is of the project folder and is taken away by the first run that ends; it stays in use where somebody holds it.
own_lock=()
if command -v flock >/dev/null; then
  exec 9>>"$logs/.running"
  if ! flock --nonblock 9; then
    echo "error: another run is at work in $results" >&2
    exit 2
  fi
  if [[ -s $logs/.running ]]; then
    echo "the run before this one did not end; what it finished is kept"
    find "$results"/{.manifest,hardware,workload,mapping,single,multi,pareto,space,front} -name '.*.tmp' -type f -delete 2>/dev/null
    find "$results" -maxdepth 1 -name '.*.tmp' -type f -delete
  fi
  [[ -n $(find .snakemake/locks -type f -print -quit 2>/dev/null) ]] || own_lock=(--nolock)
  echo "$$" >"$logs/.running"
  trap ': >"$logs/.running"' EXIT
fi

# The lock of the results lies with them: other checkouts and machines may have the same folder.
TILEWRIGHT_LOCK=$(python -m tilewright store lock "$results" --process $$) || exit
export TILEWRIGHT_LOCK
# What the run starts keeps it open, too: where the run is killed, the lock is not free before all of that has ended.
if command -v flock >/dev/null; then
  exec 8<"$results/.tilewright-lock"
  flock --shared 8
fi
unlock() {
  : >"$logs/.running"
  if grep -qs "$TILEWRIGHT_LOCK" "$results/.tilewright-lock"; then rm -f "$results/.tilewright-lock"; fi
}
trap unlock EXIT

python -m tilewright results "$config" --claim >/dev/null || exit

rm -f "$unfinished" "$ending"
unset TILEWRIGHT_UNFINISHED
export TILEWRIGHT_ENDING=$ending
interruptible snakemake --configfile "$config" ${own_lock[@]+"${own_lock[@]}"} "$@"
status=$?
unset TILEWRIGHT_ENDING

# Each job writes to a log of its own; the message that a person needs is there.
[[ $status == 0 || ! -s $ending ]] || printf '\n%s\n\n' "$(<"$ending")" >&2

# Where runs failed, or only some files were asked for, tables and figures across runs are made of the runs that are up
# to date, and name the others.
left_out=()
partial=()
stale=()
if [[ $status != 0 || $# -gt 2 ]]; then
  python -m tilewright results "$config" -o "$unfinished" || exit
  if [[ $(<"$unfinished") != "[]" ]]; then
    left_out=(--unfinished "$unfinished")
    export TILEWRIGHT_UNFINISHED=$unfinished
    snakemake across_runs --configfile "$config" ${own_lock[@]+"${own_lock[@]}"} --cores 1 --quiet all \
      >"$logs/across_runs.log" 2>&1 \
      || { status=1; cat "$logs/across_runs.log" >&2; }
  fi
fi

# So are answers of design spaces: of the designs that are evaluated, and they say how many are not. A complete front is
# of all designs or of none.
if [[ $status != 0 ]]; then
  while IFS=$'\t' read -r file folder width; do
    said=$logs/space/${folder##*/}.log
    if [[ $folder == "$results"/front/* || $folder == *.html ]]; then
      stale+=("$folder")
    elif python -m tilewright explore "$file" -o "$folder" --gather ${width:+--paper "$width"} >"$said" 2>&1; then
      partial+=("$folder")
    else
      stale+=("$folder")
      cat "$said" >&2
    fi
  done < <(python -m tilewright results "$config" --spaces)
fi

# The report is made again when a file that it may show was. What a run without a target leaves has to be up to date.
complete=()
[[ $status != 0 || $# -gt 2 ]] || complete=(--complete)
order=$(python -m tilewright results "$config" --report ${complete[@]+"${complete[@]}"} \
  ${left_out[@]+"--left-out" "$unfinished"}) || status=1
if [[ -n $order ]]; then
  echo "making $report"
  { snakemake --configfile "$config" --report "$report" --quiet all \
    && python -m tilewright --due "$order" results "$config"; } >"$logs/report.log" 2>&1 \
    || { status=1; rm -f "$report"; cat "$logs/report.log" >&2; }
fi

python -m tilewright summarize --config "$config" ${left_out[@]+"${left_out[@]}"} || [[ $status != 0 ]] || status=1

for page in "$results"/space/*/explore.html "$results"/space/*/decision.html "$results"/front/*/front.html; do
  [[ -e $page ]] || continue
  what="design space" state=""
  [[ $page != "$results"/front/* ]] || what="complete front"
  [[ $page != */decision.html ]] || what="decision"
  [[ $what == decision || " ${partial[*]-} " != *" ${page%/*} "* ]] || state=", of some designs alone"
  # A decision is of all designs: beside a page of some designs alone, it is that of before.
  [[ $what != decision || " ${partial[*]-} " != *" ${page%/*} "* ]] || state=", not made again"
  [[ " ${stale[*]-} " != *" ${page%/*} "* && " ${stale[*]-} " != *" $page "* ]] || state=", not made again"
  echo "$what: $page$state"
done
[[ ! -e $results/index.html ]] || echo "page: $results/index.html"
[[ ! -e $report ]] || echo "report: $report"
if [[ $status != 0 ]] && grep -qs '^Why' "$ending"; then
  echo "some runs failed, see above and $logs/; the others are done" >&2
elif [[ $status != 0 ]]; then
  echo "not everything was computed, see above" >&2
elif [[ -s $ending ]]; then
  cat "$ending"
elif [[ ${#left_out[@]} == 0 ]]; then
  echo "nothing had to be made: all results in $results/ were up to date"
fi
echo "in all $((SECONDS / 60)) min $((SECONDS % 60)) s"
exit $status
