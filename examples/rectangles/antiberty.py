"""Make a checkpoint for mlm-rect of the antibody model AntiBERTy: python antiberty.py WHEEL FOLDER

AntiBERTy (Ruffolo, Gray and Sulam 2021; PyPI antiberty, MIT licence) is a BERT over residues whose weights come as a
pickle. They are read here without running code and written as safetensors; the heads for species, chain and graft,
which are no part of a masked language model, are left out.
"""

import io
import json
import sys
import zipfile
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

wheel, folder = zipfile.ZipFile(sys.argv[1]), Path(sys.argv[2])
models = "antiberty/trained_models/"
config = BertConfig.from_dict(json.loads(wheel.read(models + "AntiBERTy_md_smooth/config.json")))
weights = torch.load(io.BytesIO(wheel.read(models + "AntiBERTy_md_smooth/pytorch_model.bin")), weights_only=True,
                     map_location="cpu")
model = BertForMaskedLM(config)
found = model.load_state_dict(weights, strict=False)
missing = [key for key in found.missing_keys if key != "cls.predictions.decoder.bias"]  # tied to predictions.bias
if missing:
    sys.exit(f"the weights {', '.join(missing)} are not in the wheel")
model.tie_weights()
folder.mkdir(parents=True, exist_ok=True)
config.architectures = ["BertForMaskedLM"]
model.save_pretrained(folder)
(folder / "vocab.txt").write_bytes(wheel.read(models + "vocab.txt"))
BertTokenizer(str(folder / "vocab.txt"), do_lower_case=False).save_pretrained(folder)
