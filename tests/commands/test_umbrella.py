"""mlm: the same commands under one name, their list, and the examination of the installation."""

import importlib
import tomllib

import pytest
from conftest import ROOT

from mlmglauber.commands.umbrella import places
from mlmglauber.commands.umbrella.command import COMMANDS, main
from mlmglauber.commands.umbrella.doctor import OPTIONAL


def test_every_command_is_in_the_list():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {f"mlm-{name}" for name in COMMANDS} | {"mlm"} == set(scripts)


def test_mlm_alone_lists_the_commands(capsys):
    main([])
    listed = capsys.readouterr().out
    main(["--help"])
    assert capsys.readouterr().out == listed
    assert all(f"  {name} " in listed for name in [*COMMANDS, "doctor", "examples", "schema"])
    assert max(map(len, listed.splitlines())) <= 80 or all(len(line) <= 110 for line in listed.splitlines())


def test_a_command_under_mlm_is_the_command(sh, tables):
    options = "-m a.json --seed 1 --steps 5 --every 1"
    direct = sh(f"mlm-sample {options}", stdin=b"a b\n")
    for spelling in ("mlm sample", "python -m mlmglauber sample"):
        assert sh(f"{spelling} {options}", stdin=b"a b\n") == direct
    assert direct.status == 0
    assert sh("mlm sample --steps x", stdin=b"a b\n").err.startswith("mlm-sample: ")


@pytest.mark.parametrize("name", ["nothing", "sampel", "-x"])
def test_what_is_no_command_is_status_2(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name])
    assert ended.value.code == 2
    assert name in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"mlm (mlmglauber) {importlib.import_module('mlmglauber').__version__}\n"


def test_the_doctor_names_every_extra_that_a_user_may_want():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    remedies = {remedy for _, remedy in OPTIONAL.values()}
    assert remedies == {f"pip install 'mlmglauber[{extra}]'" for extra in extras if extra != "test"}


def test_the_doctor_tells_versions_device_and_speed(sh):
    done = sh("mlm doctor")
    assert done.status == 0, done.err
    for part in (b"torch ", b"transformers ", b"device: ", b"threads: ", b"conditionals a second"):
        assert part in done.out


def test_examples_and_schema_of_a_checkout_are_its_own_files(capsys):
    for name, path in (("examples", ROOT / "examples"), ("schema", ROOT / "man" / "mlm-records.schema.json")):
        main([name])
        assert capsys.readouterr().out == f"{path}\n"


@pytest.mark.parametrize("layout", ["lib/python3.11/site-packages", "."])
def test_examples_and_schema_of_an_installation_are_under_share(layout, tmp_path, monkeypatch, capsys):
    """The layouts of an environment and of pip install --target; tests/project/test_install.py has a real one."""
    monkeypatch.setattr(places, "PACKAGE", tmp_path / layout / "mlmglauber")
    with pytest.raises(SystemExit) as ended:
        main(["schema"])
    assert ended.value.code == 1
    assert "mlm: share/mlmglauber/mlm-records.schema.json is not installed" in capsys.readouterr().err
    (tmp_path / "share" / "mlmglauber" / "examples").mkdir(parents=True)
    (tmp_path / "share" / "mlmglauber" / "mlm-records.schema.json").touch()
    for name in ("examples", "schema"):
        main([name])
        assert capsys.readouterr().out.startswith(f"{tmp_path}/share/mlmglauber/")


@pytest.mark.parametrize("name", ["doctor", "examples", "schema"])
def test_arguments_that_have_no_meaning_are_refused(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 2
    assert f"mlm: {name} takes no arguments" in capsys.readouterr().err
