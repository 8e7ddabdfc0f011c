#!/bin/sh
# The rectangle test on three models side by side: sh run.sh [FOLDER]
# tiny-en on the first 24 tokens of 24 passages, the antibody model AntiBERTy on five heavy chains of human germline
# genes, and a causal model as the control. Needs the commands on the PATH and, to make the other two models, a Python with
# torch, transformers and pip: PYTHON=..., else the one of the checkout or of the commands; some minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
command -v mlm-rect > /dev/null || { echo "run.sh: no mlm-rect on the PATH; install the suite, or add bin/ to it" >&2; exit 69; }
export TRANSFORMERS_VERBOSITY=error HF_HUB_DISABLE_PROGRESS_BARS=1

# The first Python that has what is needed.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- "$here/../../.venv/bin/python" "$(dirname "$(command -v mlm-rect)")/python" python3 python
    fi
    for python in "$@"; do
        "$python" -c 'import torch, transformers, pip' 2> /dev/null && return
    done
    echo "run.sh: no Python with torch, transformers and pip among: $*; name one as PYTHON=..., or run make setup" >&2
    exit 69
}

mkdir -p "$work"
cd "$work"
[ -d antiberty ] && [ -d control ] || find_python
[ -d antiberty ] || {
    "$python" -m pip download --quiet --no-deps --dest . antiberty==0.1.3
    "$python" "$here/antiberty.py" antiberty-0.1.3-*.whl antiberty
}
[ -d control ] || "$python" "$here/control.py" control
head -n 24 "$here/../passages.jsonl" > texts.jsonl
mlm-rect --rectangles 40 --length 24 --seed 1 -o tiny-en.jsonl texts.jsonl
mlm-rect --rectangles 40 --length 24 --seed 1 -m control -o control.jsonl texts.jsonl
mlm-rect --rectangles 40 --seed 1 -m antiberty -o antiberty.jsonl "$here/heavy-chains.txt"
cat tiny-en.jsonl antiberty.jsonl control.jsonl > all.jsonl
mlm-rect --summary --table all.jsonl
