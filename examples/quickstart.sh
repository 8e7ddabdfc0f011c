#!/bin/bash
# From passages to a drift table: 8 passages, their first 16 tokens, three temperatures, two chains each, 25 sweeps.
# Hot chains lose their topic within a few sweeps; cold ones stay where they are.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # for pipefail: every stage of a pipe may fail the script
set -euo pipefail
cd -- "$(dirname "$0")"
head -n 8 passages.jsonl |
    mlm-sample --tau 0.5,1,2 --length 16 --chains 2 --sweeps 25 --seed 1 |
    mlm-embed --encoding base64 |
    mlm-drift --summary --table
