"""The tables of mlm-rect --summary, without and with --path."""

from collections.abc import Sequence

from mlmglauber.commands.shared.tables import (
    Column,
    Table,
    count,
    figure,
    interval,
    name,
    number,
    sentence,
    share,
    small,
)
from mlmglauber.stream.records import Record

RECTANGLES = Table("|delta| of rectangles, nats", (
    Column("model", "Model that gave the conditionals.", lambda group: name(group["model"])),
    Column("tau", "Temperature.", lambda group: number(group["tau"])),
    Column("draw", "How the alternatives were drawn; named: they were not drawn.", lambda group: group["draw"]),
    Column("seed", "Seed of the draws.", lambda group: count(group.get("seed"))),
    Column("length", "Tokens that are kept of each text; a dash for all.", lambda group: count(group.get("length"))),
    Column("texts", "Texts that have rectangles.", lambda group: count(group["texts"])),
    Column("rectangles", "Rectangles whose delta is defined.", lambda group: count(group["count"])),
    Column("mean", "Mean of |delta|, with a 95 % interval over texts.",
           lambda group: interval(group["mean"], group["mean_low"], group["mean_high"], show=small)),
    Column("median", "Median of |delta|.", lambda group: figure(group["median"], small)),
    Column("RMS", "Root of the mean square of delta.", lambda group: figure(group["rms"], small)),
    Column("95 %", "95 % of rectangles have a |delta| below this.",
           lambda group: figure(group["quantiles"]["0.95"], small)),
    Column("noise floor", "The largest |delta| that rounding explains: 3 times the 95 % quantile of the noise, or "
           "the rounding of the number format if that is larger; the median over rectangles.",
           lambda group: figure(group["noise_floor"], small)),
    Column("above noise", "Rectangles whose |delta| is above their noise floor; a dash if the noise is not rounding.",
           lambda group: share(group["above_noise"])),
))
PRODUCTION = Table("Entropy production, nats a step", (
    Column("model", "Model of the chains.", lambda group: name(group["model"])),
    Column("scan", "How the sites were chosen.", lambda group: name(group.get("scan"))),
    Column("tau", "Temperature.", lambda group: number(group["tau"])),
    Column("n", "Tokens of a text.", lambda group: count(group["n"])),
    Column("chains", "Number of chains.", lambda group: count(group["chains"])),
    Column("steps", "Steps after the burn-in, over all chains.", lambda group: count(group["steps"])),
    Column("changes", "Steps that changed the state.", lambda group: count(group["changes"])),
    Column("entropy production", "Mean log-ratio of forward and backward probability a step, with its 95 % interval; 0 "
           "for a reversible chain.",
           lambda group: interval(group["entropy_production"], group["production_low"], group["production_high"], 4)),
    Column("why not", "Why there is no interval, or no number.",
           lambda group: sentence(group.get("production_reason", "").replace("_", " "))),
))
TABLES = (RECTANGLES, PRODUCTION)


def rectangle_tables(summaries: Sequence[Record]) -> list[Table]:
    """One row for each model, temperature and way of drawing."""
    return [RECTANGLES.of(group for group in summaries if group["over"] == "model")]


def production_tables(groups: Sequence[Record]) -> list[Table]:
    """One row for each temperature and length."""
    return [PRODUCTION.of(groups)]
