#!/bin/sh
# A nightly run for cron, which mails what a job prints: nothing when all is well, the reason when it is not.
#     15 2 * * * MLM_DATA=$HOME/chains sh /path/to/nightly.sh
# The output has the day in its name. A run that was killed goes on when the script is started again on the same day
# (--resume); a second one that starts meanwhile is refused with status 75.
set -eu
data=${MLM_DATA:?where the passages are and the chains go}
day=$(date +%F)
cd "$data"
if mlm-sample --model "${MLM_MODEL:-tiny-en}" --tau "${TAU:-0.5,1}" --steps "${STEPS:-20000}" --on-change --seed 1 -q \
    --resume "chains-$day.jsonl" passages.jsonl 2> "errors-$day.txt"
then
    rm -f "errors-$day.txt"
else
    status=$?
    echo "mlm-sample ended with status $status on $day:"
    cat "errors-$day.txt"
    exit "$status"
fi
