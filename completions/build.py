"""Write the completion files of the shells: `python completions/build.py`.

The files hold what click makes for each command. A shell then asks the command itself, so the files change only when
the name of a command changes. bash and fish look for a file with the name of the command, zsh reads all files whose
name begins with _, so it needs one file. A test compares the files with the result.
"""

import importlib
import tomllib
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

HERE = Path(__file__).parent
HEAD = "# Completion of the commands of mlmglauber, made by completions/build.py."


class AnyBash(BashComplete):
    """The script for bash, whatever bash this machine has: click would look for one and complain of an old one."""

    @staticmethod
    def _check_version() -> None:
        pass


def commands() -> dict[str, click.Command]:
    """The commands that the package installs, by name."""
    scripts = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["scripts"]
    places = {name: place.split(":") for name, place in sorted(scripts.items()) if name != "mlm"}
    return {name: getattr(importlib.import_module(module), main) for name, (module, main) in places.items()}


def scripts(shell: type[ShellComplete]) -> dict[str, str]:
    """What click makes for each command; the name of the variable is the one that click looks for."""
    return {name: shell(command, {}, name, f"_{name.replace('-', '_').upper()}_COMPLETE").source().strip()
            for name, command in commands().items()}


def bash() -> dict[str, str]:
    """Files for bash 4.4 or later, which bash-completion loads when they are needed."""
    return {f"bash/{name}": f"{HEAD}\n\n{script}\n" for name, script in scripts(AnyBash).items()}


def zsh() -> dict[str, str]:
    """One file, for a folder of fpath or to be sourced after compinit; zsh puts the name of the command in $service."""
    found = scripts(ZshComplete)
    parts, cases = [], []
    for name, script in found.items():
        body, ending, _ = script.removeprefix(f"#compdef {name}").partition("\nif [[ $zsh_eval_context")
        if not ending:
            raise AssertionError("click's script for zsh has another form; mend completions/build.py")
        parts.append(body.strip())
        cases.append(f'        {name}) _{name.replace("-", "_")}_completion "$@" ;;')
    names = " ".join(found)
    ask = "\n".join(["if [[ $zsh_eval_context[-1] == loadautofunc ]]; then", "    case $service in", *cases, "    esac",
                     "else", *(f"    compdef _{name.replace('-', '_')}_completion {name}" for name in found), "fi"])
    return {"zsh/_mlmglauber": "\n\n".join([f"#compdef {names}\n{HEAD}", *parts, ask]) + "\n"}


def fish() -> dict[str, str]:
    """Files that fish loads when they are needed."""
    return {f"fish/{name}.fish": f"{HEAD}\n\n{script}\n" for name, script in scripts(FishComplete).items()}


def files() -> dict[str, str]:
    """The text of each completion file, by its path in this folder."""
    return bash() | zsh() | fish()


def main() -> None:
    for name, made in files().items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(made)


if __name__ == "__main__":
    main()
