# Read by the scripts of this folder: what to run on, and where to. QUICK=1 takes sizes for a trial: all five on tiny-en
# in under 15 minutes on two cores.
#     MODEL       masked language model: a name or a directory        EMBEDDER    sentence-transformers model
#     PASSAGES    JSON Lines with `text`, 40 tokens or more           OUT         folder of the results
#     MODEL_OPTIONS, EMBEDDER_OPTIONS    more options, as "--dtype bfloat16" or "--trust-remote-code"
set -eu
examples=$(cd "$(dirname "$0")/.." && pwd)
MODEL=${MODEL:-tiny-en} EMBEDDER=${EMBEDDER:-all-MiniLM-L6-v2} PASSAGES=${PASSAGES:-$examples/passages.jsonl}
MODEL_OPTIONS=${MODEL_OPTIONS:-} EMBEDDER_OPTIONS=${EMBEDDER_OPTIONS:-} OUT=${OUT:-paper} QUICK=${QUICK:-}
export TRANSFORMERS_VERBOSITY=error HF_HUB_DISABLE_PROGRESS_BARS=1
mkdir -p "$OUT"

# quick A B: A for a trial, B for the experiment.
quick() { if [ -n "$QUICK" ]; then echo "$1"; else echo "$2"; fi; }
# A plain shell knows only how the last stage of a pipe ended: passages and sample end the script themselves.
passages() { head -n "$1" -- "$PASSAGES" || kill $$; }
# The options may be several words.
sample() { mlm-sample --model "$MODEL" $MODEL_OPTIONS --seed 1 --quiet "$@" || kill $$; }
embed() { mlm-embed --model "$EMBEDDER" $EMBEDDER_OPTIONS --encoding base64 --quiet "$@"; }
# Pictures need the extra `plot`, as mlm-plot says; without it the records are there all the same.
picture() { mlm-plot --quiet "$@" || echo "$0: no picture" >&2; }
