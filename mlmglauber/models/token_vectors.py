"""Where a model's tokens lie: the vectors that it reads them as."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def token_vectors(model: Any) -> NDArray[np.float32]:
    """(V, d) the input embeddings of a TextModel; the tokens of a table all lie equally far from each other."""
    if not hasattr(model, "model"):
        return np.eye(model.vocab_size, dtype=np.float32)
    return np.asarray(model.model.get_input_embeddings().weight.detach().float().cpu().numpy())
