"""The house: floors, arrows downwards only, no circle of imports; heavy libraries and side effects in their places."""

import ast
import importlib
from graphlib import TopologicalSorter
from pathlib import Path

from conftest import ROOT

PACKAGE = ROOT / "mlmglauber"
FLOORS = ["stream", "models", "dynamics", "measures", "pictures", "api", "commands"]
HEAVY = {"torch", "transformers", "sentence_transformers", "sklearn", "scipy", "arviz_stats", "rich", "matplotlib"}
NEURAL = {"torch", "transformers", "sentence_transformers"}
NEURAL_FILES = {"masked_lm.py", "causal_lm.py", "embedder.py", "embedder_loading.py", "checkpoint.py", "plain_text.py",
                "devices.py", "fast_start.py", "bert_network.py"}
NETWORK = PACKAGE / "models" / "bert_network.py"
"""A network of torch, whose classes inherit from torch's: it is imported in functions only."""
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}


def imports(path: Path, top_level_only=False):
    """The modules and names that a file imports, in functions too."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def libraries(path: Path, top_level_only=False) -> set[str]:
    return {name.split(".")[0] for name in imports(path, top_level_only)}


def floor(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def test_arrows_point_downwards_and_make_no_circle():
    graph = {}
    for name, path in MODULES.items():
        graph[name] = {target for target in imports(path) if target in MODULES and MODULES[target].stem != "__init__"}
        for target in graph[name]:
            floors = [FLOORS.index(floor(each)) for each in (path, MODULES[target]) if floor(each) in FLOORS]
            assert floors == sorted(floors, reverse=True), f"{name} reaches up to {target}"
    assert len(graph) > 150
    TopologicalSorter(graph).prepare()  # CycleError names a circle


def test_heavy_libraries_are_imported_where_they_are_needed():
    for path in FILES:
        assert path == NETWORK or not libraries(path, top_level_only=True) & HEAVY, path
        assert "mlmglauber.models.bert_network" not in imports(path, top_level_only=True), path
        assert path.name in NEURAL_FILES or not libraries(path) & NEURAL, path
    assert {path.name for path in FILES} >= NEURAL_FILES


def test_pictures_are_made_of_records_alone_and_the_maths_reads_no_file_and_prints_nothing():
    for path in FILES:
        if floor(path) in ("dynamics", "measures", "pictures"):
            assert not libraries(path) & {"click", "sys", "os", "pathlib"}, path
            calls = {node.func.id for node in ast.walk(ast.parse(path.read_text()))
                     if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
            assert not calls & {"print", "open", "input"}, path
        if floor(path) == "pictures":
            below = [name for name in imports(path) if name.startswith(("mlmglauber.models", "mlmglauber.dynamics"))]
            assert not below, path


def test_every_public_thing_says_what_it_is_and_class_names_are_unique():
    owners: dict[str, str] = {}
    for name, path in MODULES.items():
        module = importlib.import_module(name)
        assert module.__doc__, name
        for public, value in vars(module).items():
            if public.startswith("_") or getattr(value, "__module__", None) != name:
                continue
            assert floor(path) == "commands" or value.__doc__, f"{name}.{public}"
            if isinstance(value, type):
                assert owners.setdefault(public, name) == name, f"{public} is a class of {owners[public]} and of {name}"


def test_every_file_is_in_a_room_and_short():
    for folder in ("commands", "measures"):
        assert {path.name for path in (PACKAGE / folder).glob("*.py")} == {"__init__.py"}
    long = {str(path.relative_to(ROOT)): lines for path in FILES if (lines := len(path.read_text().splitlines())) > 300}
    assert not long


def test_what_the_tools_and_the_tests_import_of_the_package_exists():
    """Benchmarks are run by hand: what they import may be renamed without a test that fails."""
    for folder in ("tests", "man", "completions", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mlmglauber"):
                    module = importlib.import_module(node.module)
                    for alias in node.names:
                        if not hasattr(module, alias.name):
                            importlib.import_module(f"{node.module}.{alias.name}")
