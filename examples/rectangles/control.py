"""Train a small causal model on the passages, the control of the rectangle test: python control.py FOLDER

A GPT-2 of 2 layers over tiny-en's vocabulary, two minutes on one core. It need not be good: the joint law of any causal
model has compatible conditionals, so what the test finds on it is rounding.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

HERE = Path(__file__).parent
STEPS = 150
tokenizer = AutoTokenizer.from_pretrained(HERE.parent.parent / "mlmglauber" / "models" / "tiny_en")
tokenizer.bos_token = "[CLS]"
texts = [json.loads(line)["text"] for line in (HERE.parent / "passages.jsonl").read_text().splitlines()]
rows = [([tokenizer.bos_token_id, *tokenizer.encode(text, add_special_tokens=False)] * 3)[:33] for text in texts]
tokens = torch.tensor(rows)

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=128, n_embd=128, n_layer=2, n_head=4,
                                   bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.sep_token_id))
optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
for _ in range(STEPS):
    batch = tokens[torch.randint(len(tokens), (16,))]
    loss = model(input_ids=batch, labels=batch).loss
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"{STEPS} steps, {loss.item():.2f} nats a token on its own training texts", file=sys.stderr)
model.save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
