#!/bin/sh
# Every table and figure, one after the other, and a page on all of them:   QUICK=1 OUT=trial sh all.sh
set -eu
here=$(dirname "$0")
for part in rectangles drift phase-diagram traps politics; do
    echo "== $part"
    sh "$here/$part.sh"
done
echo "== report"
. "$here/settings.sh"
mlm-report --title "Glauber dynamics on $MODEL: the paper's experiments" -o "$OUT/report.html" \
    "$OUT/rectangles.jsonl" "$OUT/chains-drift.jsonl" "$OUT/drift.jsonl" "$OUT/pairs.jsonl" "$OUT/phase-diagram.jsonl" \
    "$OUT/chains.jsonl.gz" "$OUT/traps.jsonl" "$OUT/traps-summary.jsonl" "$OUT/politics.jsonl"
