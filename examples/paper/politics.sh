#!/bin/sh
# Political recurrence: chains that start from food, sports, health and politics; how many come to politics, come back to
# it and end there, beside the share of politics among independent texts. Topics are named by examples/topics.jsonl.
. "$(dirname "$0")/settings.sh"
passages 199 | sample --length 16 --steps 0 | embed -o "$OUT/draws.jsonl"
embed -o "$OUT/topics.jsonl" "$examples/topics.jsonl"
awk -v part="$(quick 2 1)" 'NR % part == 0' "$examples/starts.jsonl" |
    sample --tau 0.5,1 --length 16 --chains "$(quick 1 4)" --sweeps "$(quick 30 400)" --every "$(quick 4 1)" |
    embed -o "$OUT/politics-chains.jsonl"
basins() {
    mlm-basins --examples "$OUT/topics.jsonl" --draws "$OUT/draws.jsonl" --start-field label --summary "$@" "$OUT/politics-chains.jsonl"
}
basins --quiet -o "$OUT/politics.jsonl"
basins --quiet --table
picture -o "$OUT/politics.png" "$OUT/politics.jsonl"
