#!/bin/bash
# Do chains that start from health, sports and food keep coming back to politics, even where they do not end there?
# 28 held-out starts (seven of each, and seven of politics to compare with), their first 16 tokens, two chains each, at
# tau 0.5 and 1, for 80 sweeps. Prints the start x basin matrix, visits, moves, and the politics column with intervals.
# The first 16 tokens of 199 held-out summaries, 13 of them starts too, stand for independent draws. Minutes on two
# cores.   sh political-drift.sh [FILE]   keeps the embedded states in FILE.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
file=${1:+$(realpath -m -- "$1")}
cd -- "$(dirname "$0")"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # two stages of the pipe work at the same time, a core each
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
states=${file:-$scratch/states.jsonl}

mlm-sample --length 16 --steps 0 --seed 1 --quiet passages.jsonl | mlm-embed --encoding base64 > "$scratch/draws.jsonl"
mlm-embed --encoding base64 topics.jsonl > "$scratch/topics.jsonl"
mlm-sample --tau 0.5,1 --length 16 --chains 2 --sweeps 80 --seed 1 starts.jsonl |
    mlm-embed --encoding base64 > "$states"

basins() {
    mlm-basins --examples "$scratch/topics.jsonl" --draws "$scratch/draws.jsonl" --start-field label --summary "$@" "$states"
}
basins --table
if command -v jq > /dev/null; then
    echo "Politics, share of chains [95 % interval over texts]; expected: its share of independent draws"
    basins | jq -r 'def p($k): "\(.[$k] * 100 | round) % [\((.[$k + "_low"] // 0) * 100 | round), \((.[$k + "_high"] // 1) * 100 | round)]";
        select(.over == "start") as $row | $row.basins[] | select(.basin == "politics") |
        "tau \($row.tau)  from \($row.start): visited \(p("visited")), returned \(p("returned")), ended there \(p("terminal")), time \(p("share")), expected \(.expected_share * 100 | round) %"'
fi
