"""The table of mlm-estimate --table."""

from collections.abc import Sequence

from mlmglauber.commands.shared.tables import Column, Table, count, figure, interval, name, number, sentence, small
from mlmglauber.stream.records import Record


def _what(row: Record) -> str:
    if "token" not in row:
        return str(row["field"])
    return f"{row['token']}" + ("" if row["site"] is None else f" at {row['site']}")

PAIRS_NEEDED = "pairs needed"
ESTIMATES = Table("Stationary means, without the bias of the start", (
    Column("model", "Model of the chains.", lambda row: name(row["model"])),
    Column("tau", "Temperature.", lambda row: number(row["tau"])),
    Column("n", "Tokens of a text.", lambda row: count(row["n"])),
    Column("lag", "Steps that the first chain runs ahead.", lambda row: count(row["lag"])),
    Column("k", "First step that is averaged.", lambda row: count(row["k"])),
    Column("m", "Last step that is averaged.", lambda row: count(row["m"])),
    Column("pairs", "Independent pairs that met.", lambda row: count(row["pairs"])),
    Column("censored", "Pairs that did not meet; with one there is no estimate.", lambda row: count(row["censored"])),
    Column("mean meeting", "Mean of the steps of the first chain until the meeting.",
           lambda row: number(row["mean_meeting"], 0)),
    Column("of", "What is estimated: a --of, or the share of a token, of all sites or at one.",
           lambda row: name(_what(row)), stays=True),
    Column("mean", "Unbiased estimate of its stationary mean with its 95 % interval.",
           lambda row: interval(row["mean"], row["low"], row["high"], 3), stays=True),
    Column("error", "Standard error.", lambda row: figure(row["error"], small), stays=True),
    Column("plain average", "Average over steps k to m, biased by the start.", lambda row: figure(row["plain"], small),
           stays=True),
    Column("inefficiency", "Cost of this estimate in units of that of one long chain.",
           lambda row: number(row["inefficiency"])),
    Column(PAIRS_NEEDED, "Pairs in all for the standard error of --target-se.",
           lambda row: count(row.get("pairs_needed"))),
    Column("why not", "Why there is no estimate.", lambda row: sentence(row.get("mean_reason"))),
))

TABLES = (ESTIMATES,)

def estimate_tables(summaries: Sequence[Record]) -> list[Table]:
    """One row for each field, or token, of each kind of pairs."""
    columns = [column for column in ESTIMATES.columns
               if column.heading != PAIRS_NEEDED or any("pairs_needed" in row for row in summaries)]
    return [ESTIMATES._replace(columns=tuple(columns)).of(summaries)]
