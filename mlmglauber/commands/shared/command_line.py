"""The command line of every command: usage errors in two lines, values in UTF-8, each list given once."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from mlmglauber.commands.shared.help_groups import ALL, Group, HelpContext, write_groups
from mlmglauber.commands.shared.process import occupy_streams
from mlmglauber.stream.errors import ExitStatus
from mlmglauber.stream.printable import printable

NARROW, NARROWEST = 52, 24
"""Number of columns of a terminal for which click makes lines that are too long; and the least width of a line here."""

CONTINUED = "      "
"""Indentation of an example's second and later lines."""


class Command(click.Command):
    """A click command with two helps: --help is one screen, --help-all has everything. Usage errors are two lines."""

    context_class = HelpContext
    groups: Sequence[Group] = ()
    """The groups of all options."""

    def shown_options(self, ctx: click.Context) -> list[click.Option]:
        """The options that the help may show."""
        return [param for param in self.get_params(ctx) if isinstance(param, click.Option)]

    def description(self, ctx: click.Context) -> str:
        """Paragraphs that say what the command does."""
        return self.help or ""

    def examples(self, ctx: click.Context) -> str:
        """Command lines that show how the command is used, each on a line."""
        return self.epilog or ""

    def get_help(self, ctx: click.Context) -> str:
        """The help, also for terminals that are narrower than click's least width."""
        columns = shutil.get_terminal_size().columns
        if columns < NARROW:
            ctx.terminal_width = max(columns, NARROWEST)
        return super().get_help(ctx)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """click's option, with words that say which options it shows."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show the options of daily use and exit."
        return option

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The description; in the short help its first paragraph."""
        whole = self.description(ctx)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(whole if ALL in ctx.meta else whole.partition("\n\n")[0])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self.groups, self.shown_options(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = [fitted(line, formatter.width) for line in self.examples(ctx).splitlines()]
        formatter.write("\n".join(["", "Examples:", "", *lines, "", ""]))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but refuse an option with a list that is given twice: click drops the first list.

        --progress=FORM is one word, so that `--progress FILE` means what it always did.
        """
        end = args.index("--") if "--" in args else len(args)
        args = [*map(_progress_option, args[:end]), *args[end:]]
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        self.check_given(ctx, order)
        return super().parse_args(ctx, args)

    def check_given(self, ctx: click.Context, params: Sequence[click.Parameter]) -> None:
        """UsageError if the parameters of the command line, in their order there, do not go together."""
        for option in {param for param in params if params.count(param) > 1}:
            if isinstance(option, click.Option) and takes_list(option):
                form = "0,3,5-7" if option.metavar == "SITES" else option.metavar
                raise click.UsageError(f"{option.opts[-1]} is given twice; write one list, as in {form}", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke with values decoded as UTF-8 in every locale; the names of files may be any bytes."""
        for param in self.params:
            if param.name in ctx.params and not _names_file(param):
                try:
                    ctx.params[param.name] = _as_utf_8(ctx.params[param.name])
                except UnicodeDecodeError:
                    name = param.opts[-1] if isinstance(param, click.Option) else param.human_readable_name
                    raise click.UsageError(f"the value of {name} is not UTF-8; write it in UTF-8", ctx) from None
        return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, **kwargs: Any) -> Any:  # type: ignore[override]
        name = str(self.name)
        occupy_streams()
        try:
            return super().main(args, prog_name=name, standalone_mode=False)
        except click.UsageError as error:
            path = name if error.ctx is None else error.ctx.command_path
            print(f"{name}: {printable(error.format_message())}\nTry '{path} --help'.", file=sys.stderr)
            status = ExitStatus.USAGE
        except (click.Abort, KeyboardInterrupt):
            status = ExitStatus.INTERRUPTED
        raise SystemExit(int(status))


class AliasedOption(click.Option):
    """An option that is also accepted under older names, which neither help, man pages nor completions show."""

    def __init__(self, *args: Any, aliases: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.aliases = tuple(aliases)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Register the aliases beside the names that are shown."""
        shown, self.opts = self.opts, [*self.opts, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


def fitted(line: str, width: int) -> str:
    """A command line broken after pipes, where it is longer than `width`; the shell reads it in the same way."""
    lines = [""]
    for part in line.split(" | "):
        longer = f"{lines[-1]} | {part}" if lines[-1] else part
        if not lines[-1] or len(longer) + len(" |") <= width:
            lines[-1] = longer
        else:
            lines[-1] += " |"
            lines.append(f"{CONTINUED}{part}")
    return "\n".join(lines)


def takes_list(option: click.Option) -> bool:
    """Whether the value of an option is a list, which its metavar shows: SITES, or NAME[,NAME]..."""
    return not option.multiple and ("[," in (option.metavar or "") or option.metavar == "SITES")


def _progress_option(arg: str) -> str:
    """The hidden option of --progress=FORM; any other argument as it is."""
    form = arg.removeprefix("--progress=")
    if form in (arg, "bar", "json"):
        return arg if form == arg else f"--progress-{form}"
    raise click.UsageError(f"--progress={form} is not a form of progress; write --progress, --progress=json or "
                           "--no-progress")


def _names_file(param: click.Parameter) -> bool:
    return isinstance(param.type, click.Path) or "FILE" in (param.metavar or "")


def _as_utf_8(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        return os.fsencode(value).decode("utf-8")
    if isinstance(value, (tuple, list)):
        return type(value)(map(_as_utf_8, value))
    return value
