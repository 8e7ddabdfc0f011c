"""Write the completion files of the shells: `python completions/build.py`.

One file a shell holds what click makes for each command; a shell then asks the command itself, so the files change with
the commands' names alone. A test compares them with the result.
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


def bash() -> str:
    """To be sourced, by bash 4.4 or a later one."""
    return "\n\n".join([HEAD, *scripts(AnyBash).values()]) + "\n"


def zsh() -> str:
    """To be sourced after compinit, or autoloaded from fpath as _mlmglauber, where $service names the command."""
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
    return "\n\n".join([f"#compdef {names}\n{HEAD}", *parts, ask]) + "\n"


def fish() -> str:
    """To be sourced, or one file of fish's completions for all commands."""
    return "\n\n".join([HEAD, *scripts(FishComplete).values()]) + "\n"


FILES = {"mlmglauber.bash": bash, "mlmglauber.zsh": zsh, "mlmglauber.fish": fish}


def main() -> None:
    for name, made in FILES.items():
        (HERE / name).write_text(made())


if __name__ == "__main__":
    main()
