#!/bin/sh
# The coupling phase diagram: meeting times of coupled chains over temperature and length, and for each length the
# temperatures at which their median passes 3, 5 and 10 n ln n. The paper: a crossover at tau 1.5 to 2 that rises with n.
. "$(dirname "$0")/settings.sh"
passages "$(quick 8 200)" |
    mlm-couple --model "$MODEL" $MODEL_OPTIONS --tau "$(quick 0.5,1,1.5,2,3 0.5,1,1.25,1.5,1.75,2,2.5,3)" \
        --length "$(quick 8,16,32 8,16,32,64)" --pairs "$(quick 4 50)" --horizon 12 --seed 1 --quiet \
        -o "$OUT/pairs.jsonl"
mlm-couple --summary -o "$OUT/phase-diagram.jsonl" "$OUT/pairs.jsonl"
mlm-couple --summary --table "$OUT/pairs.jsonl"
picture -o "$OUT/phase-diagram.png" "$OUT/phase-diagram.jsonl"
