"""mlm-score against a loop that scores one masked token a call, which is how PLL is often computed by hand."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

TEXTS, TIMES = 8, 3
WORDS = 12
"""Words of a text; they are about as long as the sentences of BLiMP and other test suites."""


def sentences(passages: Path) -> list[str]:
    """TEXTS different beginnings of WORDS words."""
    words = " ".join(orjson.loads(line)["text"] for line in passages.read_bytes().splitlines()).split()
    return [" ".join(words[k * WORDS : (k + 1) * WORDS]) for k in range(TEXTS)]


def by_hand(model: Any, tokenizer: Any, texts: list[str]) -> list[float]:
    """The PLL of each text, with one forward pass for each token and the logits of all positions."""
    import torch

    plls = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        total = 0.0
        for site in range(1, ids.shape[1] - 1):
            masked = ids.clone()
            masked[0, site] = tokenizer.mask_token_id
            with torch.no_grad():
                total += float(torch.log_softmax(model(masked).logits[0, site], dim=0)[ids[0, site]])
        plls.append(total)
    return plls


def score_rows(folder: Path, bert_base: Callable[[Path], str], passages: Path,
               timed: Callable[..., Any]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, figure, target, whether it is reached) at BERT-base size.

    The time of mlm-score is that of scoring and writing, without opening the model; the loop's model is open too.
    """
    from transformers import AutoTokenizer, BertForMaskedLM

    from mlmglauber.commands.score import command as score
    from mlmglauber.commands.score import run as score_run

    place = bert_base(folder)
    model, tokenizer = BertForMaskedLM.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    texts = sentences(passages)
    (folder / "texts").write_text("".join(f"{text}\n" for text in texts))

    def ours(*options: str) -> tuple[float, list[float]]:
        spent = [0.0]
        with timed(score_run.ScoreRun, "_score", spent, time.perf_counter), suppress(SystemExit):
            score.main(["-m", place, "--by", "text", "--all-tokens", *options, "-o", str(folder / "out"), "--text",
                        str(folder / "texts")])
        return spent[0], [orjson.loads(line)["pll"] for line in (folder / "out").read_bytes().splitlines()[1:]]

    found: dict[str, list[float]] = {}
    for _ in range(TIMES):
        begin = time.perf_counter()
        plls = by_hand(model, tokenizer, texts)
        loop = time.perf_counter() - begin
        for name, options in (("PLL", ["--no-within-word"]), ("PLL and the within-word variant", [])):
            seconds, scores = ours(*options)
            far = max(abs(a - b) for a, b in zip(plls, scores, strict=True))
            assert far < 1e-3, f"PLL differs by {far} nats"
            found.setdefault(name, []).append(loop / seconds)
    for name, ratios in found.items():
        ratio = statistics.median(ratios)
        yield (f"mlm-score, BERT-base size, {TEXTS} texts of {WORDS} words, {name}, against PLL by one token a call",
               f"{ratio:.1f} x", ">= 5 x", ratio >= 5)
