#!/bin/bash
# Which shards of slurm.sbatch are finished:
#     bash shards.sh [DIR]           one line each for finished, unfinished (begun) and missing shards
#     bash shards.sh --rest [DIR]    those that are to be run, as sbatch --array takes them: 3,7,12; nothing when all are
# DIR is where the tasks ran, by default this folder. Status 0 when all are finished, else 1.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -euo pipefail
rest=
if [ "${1:-}" = --rest ]; then
    rest=yes
    shift
fi
cd -- "${1:-.}"
[ -r shards.txt ] || { echo "shards.sh: no shards.txt in $PWD: no task of slurm.sbatch ran here" >&2; exit 66; }
shards=$(cat shards.txt)
finished=() unfinished=() missing=()
for ((k = 1; k <= shards; k++)); do
    if [ -e "chains-$k-of-$shards.done" ]; then finished+=("$k")
    elif [ -e "chains-$k-of-$shards.jsonl" ]; then unfinished+=("$k")
    else missing+=("$k"); fi
done
join() { local IFS=,; echo "$*"; }
if [ -n "$rest" ]; then
    join ${unfinished[@]+"${unfinished[@]}"} ${missing[@]+"${missing[@]}"}
else
    echo "finished: $(join ${finished[@]+"${finished[@]}"})"
    echo "unfinished: $(join ${unfinished[@]+"${unfinished[@]}"})"
    echo "missing: $(join ${missing[@]+"${missing[@]}"})"
fi
[ "${#finished[@]}" -eq "$shards" ]
