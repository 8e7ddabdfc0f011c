#!/bin/sh
# One command over a file on all cores by GNU parallel, each process a shard of the input:
#     sh parallel.sh FILE 'mlm-sample --tau 0.5 --steps 2000 --seed 1' > chains.jsonl
# SHARDS sets the number of processes, by default that of the cores. Give a seed: the shards must share it. The records
# are those of one process, in another order; each shard repeats the run records, which are written once. A shard with
# a bad record ends with status 65 and says so, the others are not stopped.
set -eu
file=${1:?usage: parallel.sh FILE COMMAND}
command=${2:?usage: parallel.sh FILE COMMAND}
shards=${SHARDS:-$(nproc)}
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
seq "$shards" | parallel --will-cite --group --halt never "$command --shard {}/$shards $file || true" |
    awk '!/^\{"type":"run"/ || !seen[$0]++'
