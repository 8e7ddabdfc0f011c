#!/bin/sh
# How well do the labels of topics.jsonl name texts that are cut to 16 tokens, as political-drift.sh cuts them? Five folds:
# the whole summaries of four name the cut summaries of the fifth. Without rejection, then at the threshold of 0.5 that
# mlm-basins has: how many are named, how many of these rightly, and of each label how many are found. Needs jq; under a
# minute.
set -eu
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mlm-embed --encoding base64 --quiet topics.jsonl > "$scratch/whole"
mlm-sample --length 16 --steps 0 --seed 1 --quiet topics.jsonl | mlm-embed --encoding base64 --quiet > "$scratch/cut"
grep '"type": *"run"' "$scratch/whole" > "$scratch/run" || true

# fold FILE K TEST: the labelled records whose number leaves K when divided by 5 (TEST ==) or the others (TEST !=).
fold() { jq -c 'select(.label and .embedding)' "$1" | awk -v k="$2" "NR % 5 $3 k"; }
named() {
    for k in 0 1 2 3 4; do
        { cat "$scratch/run"; fold "$scratch/whole" $k '!='; } > "$scratch/examples"
        { cat "$scratch/run"; fold "$scratch/cut" $k '=='; } |
            mlm-basins --examples "$scratch/examples" --reject "$1" --quiet | jq -c 'select(.label and has("basin"))'
    done
}
share='def share(f): "\(100 * (map(select(f)) | length) / length | round) %"'
named 0 | jq -rs "$share"'; "without rejection: \(share(.basin == .label)) right"'
named 0.5 | jq -rs "$share"'; "at 0.5: \(share(.basin)) named, of these \(map(select(.basin)) | share(.basin == .label)) right;"
    + " found: " + (group_by(.label) | map("\(.[0].label) \(share(.basin == .label))") | join(", "))'
