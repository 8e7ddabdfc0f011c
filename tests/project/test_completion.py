"""The completion files: what build.py makes, sound in their shells, and they complete."""

import importlib.util
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

FOLDER = ROOT / "completions"
SPEC = importlib.util.spec_from_file_location("completions_build", FOLDER / "build.py")  # man/ has a build.py too
build = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build)


FILES = build.files()


def test_the_files_are_what_build_makes(tmp_path, monkeypatch):
    found = {str(path.relative_to(FOLDER)): path.read_text() for path in FOLDER.glob("*/*") if path.suffix != ".pyc"}
    assert found == FILES, f"run {FOLDER.name}/build.py"
    monkeypatch.setenv("PATH", str(tmp_path))  # neither bash nor anything else is needed to make them
    assert build.files() == FILES


def test_every_command_has_the_file_that_its_shell_looks_for():
    """bash and fish look for the name of the command; zsh reads the first line of each file that begins with _."""
    assert "mlm-sample" in build.commands()
    assert set(FILES) == {"zsh/_mlmglauber", *(f"bash/{name}" for name in build.commands()),
                          *(f"fish/{name}.fish" for name in build.commands())}
    assert FILES["zsh/_mlmglauber"].splitlines()[0].split() == ["#compdef", *build.commands()]
    for command in build.commands():
        for file in (f"bash/{command}", f"fish/{command}.fish", "zsh/_mlmglauber"):
            assert f"_{command.replace('-', '_').upper()}_COMPLETE=" in FILES[file]
            assert f"_{command.replace('-', '_')}_completion" in FILES[file]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_files_are_sound_in_their_shell(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for name in FILES:
        if name.startswith(shell):
            done = subprocess.run([shell, "-n", FOLDER / name], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("command", "words", "expected"), [
    ("mlm-sample", "mlm-sample --st", {"--start", "--steps", "--strict"}),
    ("mlm-sample", "mlm-sample --scan perm", {"permutation"}),
    ("mlm-traps", "mlm-traps --draw ", {"copies", "texts"}),
    ("mlm-traps", "mlm-traps certify --s", {"--seed", "--scan-tokens", "--strict"}),
    ("mlm-traps", "mlm-traps find --max", {"--max-sweeps"}),
    ("mlm-sample", "mlm-sample --en", {"--engine"}),
    ("mlm-plot", "mlm-plot --kind re", {"rectangles", "residence"}),
    ("mlm-drift", "mlm-drift --te", set()),
    ("mlm-show", "mlm-show --help", {"--help", "--help-all"}),
    ("mlm-exact", "mlm-exact --vo", set()),
])
def test_bash_completes(sh, command, words, expected):
    """The file is sourced, its function called as bash calls it."""
    number = len(words.split(" ")) - 1
    done = sh(f"source '{FOLDER}/bash/{command}' && complete -p {command} > registered && COMP_WORDS=({words}) && "
              f"COMP_CWORD={number} && _{command.replace('-', '_')}_completion {command} && "
              'printf "%s\\n" "${COMPREPLY[@]}"')
    assert (done.status, done.err) == (0, "")
    assert set(done.out.decode().split()) == expected
    assert f"_{command.replace('-', '_')}_completion" in (sh.folder / "registered").read_text()


def test_a_command_answers_the_shell(sh):
    """What all three files ask for."""
    for shell, words, number in (("bash", "mlm-sample --st", 1), ("zsh", "mlm-sample --st", 1),
                                 ("fish", "mlm-sample --st", "--st")):
        done = sh("mlm-sample", COMP_WORDS=words, COMP_CWORD=str(number), _MLM_SAMPLE_COMPLETE=f"{shell}_complete")
        assert (done.status, done.err) == (0, "")
        assert {"--steps", "--strict"} <= set(done.out.decode().replace(",", " ").split())


def test_the_names_of_modes_are_completed_in_the_first_place_alone(sh):
    for words, number, expected in (("mlm-traps fi", 1, {"find", "fi"}), ("mlm-traps find fi", 2, {"fi"}),
                                    ("mlm-traps -s 3 ce", 3, {"certify", "ce"})):
        done = sh("mlm-traps", COMP_WORDS=words, COMP_CWORD=str(number), _MLM_TRAPS_COMPLETE="bash_complete")
        assert (done.status, done.err) == (0, "")
        assert {line.split(",")[1] for line in done.out.decode().splitlines()} == expected


def test_no_heavy_library_is_imported_for_a_completion(sh):
    done = sh(f"'{sys.executable}' -X importtime -m mlmglauber.commands.sample.command", COMP_WORDS="mlm-sample --st",
              COMP_CWORD="1", _MLM_SAMPLE_COMPLETE="bash_complete")
    assert not any(f" {name}\n" in done.err for name in ("torch", "numpy", "scipy"))
