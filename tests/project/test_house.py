"""The house: floors, arrows downwards only; heavy libraries and input and output where they belong."""

import ast
import importlib
from pathlib import Path

import pytest
from conftest import ROOT

FLOORS = ["stream", "models", "dynamics", "measures", "pictures", "commands"]
HEAVY = {"torch", "transformers", "sentence_transformers", "sklearn", "scipy", "arviz_stats", "rich", "matplotlib"}
TORCH_FILES = {"masked_lm.py", "causal_lm.py", "embedding.py", "checkpoint.py", "plain_text.py"}
FILES = sorted((ROOT / "mlmglauber").rglob("*.py"))


def imports(path: Path, top_level_only=False):
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def floor(path: Path) -> str:
    return path.relative_to(ROOT / "mlmglauber").parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_downwards(path):
    if floor(path) not in FLOORS:
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "mlmglauber" and len(parts) > 1 and parts[1] in FLOORS:
            assert FLOORS.index(parts[1]) <= FLOORS.index(floor(path)), f"{path.name} reaches up to {name}"


@pytest.mark.parametrize("path", [path for path in FILES if floor(path) == "pictures"], ids=lambda path: path.name)
def test_pictures_are_made_of_records_alone(path):
    assert not any(name.startswith(("mlmglauber.models", "mlmglauber.dynamics")) for name in imports(path))
    assert not {name.split(".")[0] for name in imports(path)} & {"click", "sys", "os", "pathlib"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_libraries_are_imported_where_they_are_needed(path):
    assert not {name.split(".")[0] for name in imports(path, top_level_only=True)} & HEAVY
    if path.name not in TORCH_FILES:
        assert not {name.split(".")[0] for name in imports(path)} & {"torch", "transformers", "sentence_transformers"}


@pytest.mark.parametrize("path", [path for path in FILES if floor(path) in ("dynamics", "measures")],
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_the_maths_reads_no_file_and_prints_nothing(path):
    calls = {node.func.id for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not calls & {"print", "open", "input"}
    assert not {name.split(".")[0] for name in imports(path)} & {"click", "sys", "os", "pathlib"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_thing_says_what_it_is(path):
    if floor(path) == "commands" or path.name == "__init__.py":
        return
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert module.__doc__
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
            assert value.__doc__, name
