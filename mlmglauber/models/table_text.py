"""A table of conditionals whose tokens have names: a toy model in a JSON file, for questions with exact answers.

    {"tokens": ["a", "b"], "tables": [[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.5, 0.5]]]}

`tables` is the argument of TableConditional; `joint`, an array of shape (V,) * n, may replace it; `allowed` lists, for
each token, whether it may be drawn.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from mlmglauber import __version__
from mlmglauber.models.conditionals import Floats, Ids, OneLevel, TableConditional, TextModel
from mlmglauber.stream.errors import ModelError, RecordError


class TableText(OneLevel, TextModel):
    """A TextModel over a TableConditional: a text is names of tokens with spaces between them."""

    def __init__(self, table: TableConditional, tokens: Sequence[str], name: str, digest: str) -> None:
        if len(tokens) != table.vocab_size or len(set(tokens)) != len(tokens):
            raise ValueError(f"the names are {list(tokens)}; give {table.vocab_size} different names, one per token")
        if not all(isinstance(token, str) and token.split() == [token] for token in tokens):
            raise ValueError("a token's name must be a word without spaces")
        self.table, self.tokens = table, list(tokens)
        self.vocab_size, self.allowed, self.max_sites = table.vocab_size, table.allowed, table.sites
        self.mask_id: int | None = None
        self.unknown_id: int | None = None
        self._name, self._digest = name, digest
        self._ids = {token: k for k, token in enumerate(tokens)}

    @classmethod
    def open(cls, name: str) -> "TableText":
        """Read a JSON file; ModelError where it is missing or holds no table of conditionals."""
        try:
            content = Path(name).read_bytes()
            value = orjson.loads(content)
            allowed = value.get("allowed")
            if "joint" in value:
                table = TableConditional(TableConditional.from_joint(value["joint"]).tables, allowed)
            else:
                table = TableConditional(value["tables"], allowed)
            return cls(table, value["tokens"], name, hashlib.sha256(content).hexdigest()[:16])
        except OSError as error:
            raise ModelError(f"{name}: {error.strerror}; give a file with a table of conditionals") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ModelError(f'{name}: not a table of conditionals ({error}); give "tokens" and "tables"') from error

    def log_probs(self, ids: Ids, sites: Ids) -> Floats:
        """See Conditional."""
        return self.table.log_probs(ids, sites)

    def check_ids(self, ids: Sequence[int]) -> None:
        """See TextModel."""
        if len(ids) != self.table.sites:
            raise RecordError(f"the table has {self.table.sites} sites, the state {len(ids)}; give one token per site")
        for token in ids:
            if not 0 <= token < self.vocab_size:
                raise RecordError(f"token id {token} is outside the table's {self.vocab_size} tokens; correct the ids")

    def encode(self, text: str) -> list[int]:
        """See TextModel."""
        words = text.split()
        unknown = [word for word in words if word not in self._ids]
        if unknown:
            raise RecordError(f"{unknown[0]!r} is not a token of this table; its tokens are {' '.join(self.tokens)}")
        return [self._ids[word] for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        """See TextModel."""
        return " ".join(self.tokens[token] for token in ids)

    def describe(self) -> dict[str, Any]:
        """See TextModel."""
        return {
            "model": self._name, "hash": self._digest, "class": "TableConditional", "tokenizer": "words",
            "vocab": self.vocab_size, "banned": int((~self.allowed).sum()), "dtype": "float64",
            "precision": "float64", "device": "cpu",
            "versions": {"mlmglauber": __version__, "numpy": np.__version__},
        }
