#!/bin/sh
# The rectangle test on three models side by side: sh run.sh [FOLDER]
# tiny-en on the first 24 tokens of 24 passages, the antibody model AntiBERTy on five heavy chains of human germline
# genes, and a causal model as the control. Needs the commands on the PATH and, for AntiBERTy, pip; some minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
python=${PYTHON:-python3}
export TRANSFORMERS_VERBOSITY=error HF_HUB_DISABLE_PROGRESS_BARS=1
mkdir -p "$work"
cd "$work"
[ -d antiberty ] || {
    "$python" -m pip download --quiet --no-deps --dest . antiberty==0.1.3
    "$python" "$here/antiberty.py" antiberty-0.1.3-*.whl antiberty
}
[ -d control ] || "$python" "$here/control.py" control
head -n 24 "$here/../passages.jsonl" > texts.jsonl
mlm-rect --rectangles 40 --length 24 --seed 1 -o tiny-en.jsonl texts.jsonl
mlm-rect --rectangles 40 --length 24 --seed 1 -m control -o control.jsonl texts.jsonl
mlm-rect --rectangles 40 --seed 1 -m antiberty -o antiberty.jsonl "$here/heavy-chains.txt"
cat tiny-en.jsonl antiberty.jsonl control.jsonl | mlm-rect --summary --table
