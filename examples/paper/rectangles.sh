#!/bin/sh
# The rectangle table: the conditionals of the model fit no joint law. Mean, median and RMS of |delta| in nats over
# random rectangles, with the noise floor of the arithmetic. The paper: delta in [0.64, 0.80] for BERT, RoBERTa and ModernBERT.
. "$(dirname "$0")/settings.sh"
passages "$(quick 24 1000)" |
    mlm-rect --model "$MODEL" $MODEL_OPTIONS --rectangles "$(quick 10 40)" --length 24 --seed 1 --quiet \
        -o "$OUT/rectangles.jsonl"
mlm-rect --summary --table "$OUT/rectangles.jsonl"
picture -o "$OUT/rectangles.png" "$OUT/rectangles.jsonl"
