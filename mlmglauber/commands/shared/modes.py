"""A command of several modes: its first argument names one, which has its own help and its own options."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from mlmglauber.commands.shared.command_line import Command

SHARED = "files", "output", "strict", "quiet", "verbose", "progress", "no_color"
"""Parameters of every command, and so of every mode; --help and --version, which are eager, are the others."""


class Mode(NamedTuple):
    """One mode of a command.

    options: names of the parameters that it takes besides SHARED. values: what its word stands for. needs: names of
    parameters of which one at least must be given.
    """

    description: str
    examples: str
    options: frozenset[str]
    values: Mapping[str, Any] = {}
    needs: tuple[str, ...] = ()


class ModeCommand(Command):
    """A command whose first argument may be the name of a mode, as in `mlm-traps find`.

    A first argument that is the name of an existing file is that file. Without the name of a mode the first mode runs,
    and the options of all modes are accepted: this is the older form of the command line.
    """

    def __init__(self, *args: Any, modes: Mapping[str, Mode], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.modes = modes

    def modes_of(self, param: click.Parameter) -> list[str]:
        """The names of the modes that take a parameter."""
        shared = param.is_eager or param.name in SHARED
        return [name for name, mode in self.modes.items() if shared or param.name in mode.options]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the name of the mode off, then parse; the mode's own values are set."""
        if args and args[0] in self.modes and not os.path.exists(args[0]):
            name, *args = args
            ctx.meta[__name__] = name
            ctx.info_name = f"{ctx.info_name} {name}"
        rest = super().parse_args(ctx, args)
        ctx.params.update(self._mode(ctx).values)
        for file in () if ctx.resilient_parsing else ctx.params["files"]:
            if file in self.modes and not os.path.exists(file):
                raise click.UsageError(f"no file is named {file}; for the mode {file} write '{self.name} {file}' first",
                                       ctx)
        return rest

    def check_given(self, ctx: click.Context, params: Sequence[click.Parameter]) -> None:
        """UsageError also for options of another mode, for a mode without what it needs, and for a misplaced name."""
        super().check_given(ctx, params)
        if __name__ not in ctx.meta or ctx.resilient_parsing or any(param.is_eager for param in params):
            return
        name, mode = ctx.meta[__name__], self._mode(ctx)
        for param in params:
            others = self.modes_of(param)
            if name not in others:
                where = " and ".join(f"'{self.name} {other}'" for other in others) or f"'{self.name}' without a mode"
                raise click.UsageError(f"{param.opts[-1]} is an option of {where}; leave it out", ctx)
        if mode.needs and not any(param.name in mode.needs for param in params):
            options = [param.opts[-1] for param in self.params if param.name in mode.needs]
            raise click.UsageError(f"nothing to do; give {' or '.join(options)}", ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return pieces if __name__ in ctx.meta else [f"[{'|'.join(self.modes)}]", *pieces]

    def description(self, ctx: click.Context) -> str:
        """That of the mode, if one is named."""
        return self._mode(ctx).description if __name__ in ctx.meta else super().description(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of the mode; without the name of a mode also the list of modes."""
        if __name__ not in ctx.meta:
            with formatter.section("Modes"):
                formatter.write_dl([(name, mode.description.partition("\n\n")[0]) for name, mode in self.modes.items()])
                formatter.write_paragraph()
                formatter.write_text(f"'{self.name} MODE --help' shows the options of a mode; below are those of "
                                     f"{next(iter(self.modes))}, which runs where no mode is named.")
        super().format_options(ctx, formatter)

    def examples(self, ctx: click.Context) -> str:
        """Those of the mode, if one is named."""
        return self._mode(ctx).examples if __name__ in ctx.meta else super().examples(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The options of the mode."""
        names = {name for option in self.shown_options(ctx) for name in (*option.opts, *option.secondary_opts)}
        return [item for item in super().shell_complete(ctx, incomplete) if item.value in names]

    def _mode(self, ctx: click.Context) -> Mode:
        """The mode that is named, else the first one, which sets no values."""
        return self.modes[ctx.meta.get(__name__) or next(iter(self.modes))]

    def shown_options(self, ctx: click.Context) -> list[click.Option]:
        """The options of the mode."""
        name = ctx.meta.get(__name__) or next(iter(self.modes))
        return [option for option in super().shown_options(ctx) if name in self.modes_of(option)]


def complete_first(modes: Mapping[str, Mode]) -> Any:
    """A function that completes a FILE argument: names of modes in the first place, and files."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        first = __name__ not in ctx.meta and not ctx.params.get("files")
        names = [name for name in modes if first and name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]

    return complete
