"""The sdist and the wheel: both are complete, and both work in a fresh environment."""

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import PurePath

import fresh
import orjson
import pytest
from conftest import ROOT
from oracles import TABLE_B
from pages import blocks

PIPE = "echo 'the cat sat on the mat' | mlm-sample --tau 2 --sweeps 2 --seed 1 | mlm-embed | mlm-drift"
OWN_TESTS = "tests/project/test_completion.py tests/project/test_house.py tests/measures/test_survival.py"
"""Quick tests that need the files of the project as well as the package."""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    return fresh.build(tmp_path_factory.mktemp("distributions"))


def test_the_sdist_has_every_file_of_the_repository(distributions):
    if not (ROOT / ".git").exists():
        pytest.skip("only git knows which files belong to the repository")
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True)
    with tarfile.open(distributions[0]) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    assert [name for name in listed.stdout.splitlines() if name not in packed] == [], "name them in MANIFEST.in"


def test_the_wheel_has_every_file_of_the_package_and_the_licences(distributions):
    names = zipfile.ZipFile(distributions[1]).namelist()
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "mlmglauber").rglob("*")
               if path.is_file() and path.suffix != ".pyc"}
    assert {name for name in names if name.startswith("mlmglauber/")} == package
    licences = {name.partition("/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "LICENSES/Apache-2.0.txt", "mlmglauber/models/tiny_en/LICENSES.md",
                        "examples/PASSAGES.md", "examples/TOPICS.md"}


def test_the_wheel_has_the_files_that_man_and_the_shells_look_for(distributions):
    wanted = {"share/mlmglauber/mlm-records.schema.json"}
    wanted |= {f"share/man/man{page.suffix[1:]}/{page.name}" for page in (ROOT / "man").glob("*.[0-9]")}
    for shell, folder in (("bash", "bash-completion/completions"), ("zsh", "zsh/site-functions"),
                          ("fish", "fish/vendor_completions.d")):
        wanted |= {f"share/{folder}/{file.name}" for file in (ROOT / "completions" / shell).iterdir()}
    wanted |= {f"share/mlmglauber/{path.relative_to(ROOT)}" for path in (ROOT / "examples").rglob("*")
               if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)}
    names = zipfile.ZipFile(distributions[1]).namelist()
    share = {name.partition(".data/data/")[2] for name in names if ".data/data/" in name}
    assert share == wanted, "name each folder of examples/ under data-files in pyproject.toml"
    assert all(any(PurePath(name).match(pattern) for name in share) for pattern in (
        "man/man1/mlm-sample.1", "man/man5/*.5", "man/man7/*.7", "completions/mlm-sample", "site-functions/_mlmglauber",
        "vendor_completions.d/mlm-sample.fish", "examples/passages.txt", "examples/paper/*.sh"))


def test_the_wheel_in_a_fresh_environment(distributions, tmp_path):
    """The libraries are those of the test's environment, so nothing is downloaded."""
    check(fresh.environment(tmp_path / "environment", distributions[1]), tmp_path)


def test_the_sdist_in_a_fresh_environment_runs_its_own_tests(distributions, tmp_path):
    """The libraries are those of the test's environment, so nothing is downloaded."""
    environment = fresh.environment(tmp_path / "environment", distributions[0])
    with tarfile.open(distributions[0]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("mlmglauber-*")
    done = fresh.user(environment, folder)(f"python -m pytest -p no:cacheprovider {OWN_TESTS}")
    assert " passed" in done.stdout
    (tmp_path / "toy.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "tables": TABLE_B}))
    states = fresh.user(environment, tmp_path)("echo a b | mlm-sample --model toy.json --steps 3 --seed 1 --every 1")
    assert states.stdout.count('"type":"state"') == 4


@pytest.mark.soak
def test_the_wheel_with_all_libraries_from_the_index(distributions, tmp_path):
    """As a user installs it; about 2 GB are downloaded or copied."""
    environment = fresh.whole_environment(tmp_path / "environment", f"{distributions[1]}[offline,plot,dask]")
    check(environment, tmp_path)
    fresh.user(environment, tmp_path)('sh "$(mlm examples)/quickstart.sh" && mlm doctor')


def check(environment, folder):
    """One pipe, the manual, a completion and the files beside the package, as a user sees them."""
    work = folder / "a folder"
    work.mkdir()
    sh = fresh.user(environment, work)
    states = [orjson.loads(line) for line in sh(PIPE).stdout.splitlines()]
    assert [record["step"] for record in states if record["type"] == "state"] == [0, 6, 12]
    assert states[-1]["drift"] > 0
    share = environment / "share"
    assert sh("mlm examples; mlm schema").stdout.splitlines() == [
        f"{share}/mlmglauber/examples", f"{share}/mlmglauber/mlm-records.schema.json"]
    assert sh('head -n 1 "$(mlm examples)/passages.txt"').stdout
    assert sh('cd / && python -c "import mlmglauber; print(mlmglauber.__file__)"').stdout.startswith(str(environment))
    manual, completions = (block.code for block in blocks("docs/install.md") if block.mark == "wheel")
    completed = sh(f"{completions}COMP_WORDS=(mlm-sample --sw) && COMP_CWORD=1 && _mlm_sample_completion mlm-sample && "
                   "echo ${COMPREPLY[@]} && complete -p mlm-plot").stdout.splitlines()
    assert completed == ["--sweeps", "complete -o nosort -F _mlm_plot_completion mlm-plot"]
    man = next(filter(shutil.which, ("man", "mman")), None)  # Debian's mandoc calls its man mman
    if man is None:
        pytest.skip("no man is installed; all else was checked")
    page = fresh.user(environment, work, MANPAGER="cat")(f"{manual.replace('man -M', f'{man} -M').rstrip()} | col -b")
    assert "run Glauber chains from texts" in page.stdout
    assert "--sweeps" in page.stdout
