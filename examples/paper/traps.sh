#!/bin/sh
# Semantic traps: stretches of cold chains within one changed token of a text, how long they last, and how long their
# exact escape probabilities say that they should. The paper: traps of hundreds to thousands of steps.
. "$(dirname "$0")/settings.sh"
passages "$(quick 6 200)" | sample --tau 0.3,0.5 --length 16 --steps "$(quick 2000 20000)" --on-change |
    gzip > "$OUT/chains.jsonl.gz"
traps() {
    mlm-traps --model "$MODEL" $MODEL_OPTIONS --min-steps "$(quick 100 200)" --quiet "$@" "$OUT/chains.jsonl.gz"
}
traps -o "$OUT/traps.jsonl"
traps --summary --no-table -o "$OUT/traps-summary.jsonl"
traps --summary --table
picture --kind residence -o "$OUT/traps.png" "$OUT/traps.jsonl"
