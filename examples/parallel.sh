#!/bin/bash
# One command over a file on all cores by GNU parallel, each process a shard of the input:
#     bash parallel.sh FILE 'mlm-sample --tau 0.5 --steps 2000 --seed 1' > chains.jsonl
# SHARDS sets the number of processes, by default that of the cores. Give a seed: the shards must share it. The records
# are those of one process, in another order; each shard repeats the run records, which are written once.
# A shard that fails does not stop the others. Status: 0 when all ended well, 65 when some had bad records and the rest
# was answered, 1 when a shard failed: standard error names it, and its records are not all there.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -euo pipefail
FILE=${1:?usage: parallel.sh FILE COMMAND}
command=${2:?usage: parallel.sh FILE COMMAND}
[ -r "$FILE" ] || { echo "parallel.sh: $FILE: cannot be read; check the name" >&2; exit 66; }
shards=${SHARDS:-$(nproc)}
export FILE OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
seq "$shards" | parallel --will-cite --group --halt never --joblog "$log" "$command --shard {}/$shards -- \"\$FILE\"" |
    awk '!/^\{"type":"run"/ || !seen[$0]++' || status=$?
# The columns of the log: 1 number of the job, which is the shard's, 7 exit status, 8 signal.
ended=$(awk 'NR > 1' "$log" | wc -l)
failed=$(awk 'NR > 1 && ($8 != 0 || ($7 != 0 && $7 != 65)) { print $1 }' "$log" | sort -n | paste -sd, -)
bad=$(awk 'NR > 1 && $7 == 65' "$log" | wc -l)
if [ -n "$failed" ] || [ "$ended" -lt "$shards" ]; then
    echo "parallel.sh: $ended of $shards shards ended, of these failed: ${failed:-none}; run it again" >&2
    exit 1
fi
[ "$bad" -eq 0 ] || exit 65
exit "$status"
