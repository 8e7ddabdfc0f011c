"""The page of the stationary law: its script runs in small, and its means are those of the records."""

import os
import subprocess
import sys

import numpy as np
import orjson
import pytest
from conftest import PATH, ROOT

sys.path.insert(0, str(ROOT / "examples" / "stationary"))
import page

FOLDER = ROOT / "examples" / "stationary"


def state(tau, name, step, pll, basin):
    return {"type": "state", "tau": tau, "id": name, "step": step, "pll": pll, "basin": basin, "repeats": 0}


def test_means_of_texts_by_hand(tmp_path):
    """Two chains: the second halves have (-4, -8), mean -6, and (-2), so -4 with an error of 2."""
    records = [state(0.5, "a", 0, -100.0, None), state(0.5, "a", 2, -4.0, "arts"), state(0.5, "a", 4, -8.0, None),
               state(0.5, "b", 0, -100.0, None), state(0.5, "b", 3, -2.0, "arts")]
    (tmp_path / "f").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    found = page.columns_of(tmp_path / "f", late=True)[0.5]
    assert found["pll"] == (-4, 2)
    assert found["basin=arts"] == (0.75, 0.25)
    assert found["basin=politics"] == (0, 0)
    assert page.columns_of(tmp_path / "f", late=False)[0.5]["pll"][0] == pytest.approx((-112 / 3 - 51) / 2)
    assert page.shown("pll", (-4.0, 2.0), 2) == "-2.00 ± 1.00"
    assert page.shown("basin=arts", (0.75, None), 2) == "75.0 %"


def test_the_page_is_that_of_the_script():
    """Its head is the script's, and no number is missing where pairs met."""
    text = (ROOT / "docs" / "stationary.md").read_text()
    assert text.startswith(page.HEAD.partition("{texts}")[0])
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len(tables) == 2 * (4 + len(page.FIELDS))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables]
    for table in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        met = [cell.split(" of ") for cell in table[-2][1:] if cell]
        shown = table[2][1 + len(table[0]) - 1 - len(met) :]
        assert [cell == "—" for cell in shown] == [some != every for some, every in met]


@pytest.mark.soak
def test_the_script_in_small(tmp_path):
    """Two passages, four tokens, tau 0.5 and 3: the page holds what mlm-estimate wrote and the means of the records."""
    small = {"TAUS": "3", "COLD": "0.5", "LENGTHS": "4", "TEXTS": "2", "PAIRS": "1"}
    done = subprocess.run(["bash", FOLDER / "run.sh", "a folder"], cwd=tmp_path, capture_output=True, text=True,
                          check=False, env={**os.environ, "PATH": PATH, **small})
    assert done.returncode == 0, done.stderr
    rows = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
            for cells in (line.split("|") for line in done.stdout.splitlines() if line.startswith("|"))}
    assert rows["pairs that met"] == ["", "", "0 of 2", "2 of 2"]
    estimates = [orjson.loads(line) for line in (tmp_path / "a folder" / "estimates.jsonl").read_bytes().splitlines()]
    hot, = [record for record in estimates if record["tau"] == 3 and record["field"] == "pll"]
    assert rows[page.NAMES["pll"]][3] == f"{hot['mean'] / 4:.2f} ± {hot['error'] / 4:.2f}"
    assert rows[page.NAMES["pll"]][2] == "—"
    states = [orjson.loads(line) for line in (tmp_path / "a folder" / "corpus-4.jsonl").read_bytes().splitlines()]
    plls = [record["pll"] / 4 for record in states if record["type"] == "state" and record["pll"] is not None]
    error = np.std(plls, ddof=1) / np.sqrt(len(plls))
    assert rows[page.NAMES["pll"]][0] == f"{np.mean(plls):.2f} ± {error:.2f}"
