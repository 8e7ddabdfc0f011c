#!/bin/sh
# Drift against temperature and length: the cosine distance of a chain's embedding from its start's, step by step, and
# the steps until it first passes 0.5, as C n ln n. The paper: hot chains leave in O(n log n) steps, cold ones stay.
. "$(dirname "$0")/settings.sh"
for n in 8 16 32; do
    passages "$(quick 3 200)" | sample --tau 0.5,1,1.5,2,3 --length "$n" --sweeps "$(quick 20 200)" --every "$((n / 4))"
done | embed -o "$OUT/embedded.jsonl"
mlm-drift --summary --quiet -o "$OUT/drift.jsonl" "$OUT/embedded.jsonl"
mlm-drift --summary --table --quiet "$OUT/embedded.jsonl"
mlm-drift --quiet -o "$OUT/chains-drift.jsonl" "$OUT/embedded.jsonl"
picture --kind drift -o "$OUT/drift.png" "$OUT/chains-drift.jsonl"
