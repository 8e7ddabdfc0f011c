"""What a reader of a page must know before the numbers: chains that did not move, mix or meet, records left out."""

from mlmglauber.commands.report.group_warnings import group_warnings
from mlmglauber.commands.report.records import ReportRecords
from mlmglauber.stream.printable import counted, were


def warnings(records: ReportRecords) -> list[str]:
    """Sentences, the gravest first."""
    found, counts = [], records.counts
    bad = records.io.reporter.bad_records
    if bad:
        found.append(f"{counted(bad, 'bad record')} {were(bad)} left out of this page; mlm-report named the line of "
                     "each on standard error.")
    found += records.runs.warnings()
    if counts["without run"]:
        found.append(f"No run record came before {counted(counts['without run'], 'state')}: model, options and scan of "
                     "their chains are not known.")
    for what, summaries in records.summaries.by_kind.items():
        found += group_warnings(what, summaries)
    if counts["censored traps"]:
        cut = counts["censored traps"]
        found.append(f"{cut} of {counted(counts['traps'], 'trap')} {were(cut)} cut off by the end of the records: they "
                     "last longer than is shown.")
    if counts["masked"]:
        found.append(f"{counted(counts['masked'], 'state')} with masked sites {were(counts['masked'])} left out: they "
                     "have no text.")
    if counts["truncated"]:
        found.append(f"{counted(counts['truncated'], 'text')} {were(counts['truncated'])} longer than the embedder "
                     "takes; their embeddings see the beginning only.")
    if counts["unknown"]:
        found.append(f"{counted(counts['unknown'], 'state')} had tokens that are unknown to the model.")
    left_out = records.summaries.left_out + records.runs.left_out
    if left_out:
        found.append(f"{counted(left_out, 'record')} {were(left_out)} left out of the tables, which would be too long; "
                     "make a page for each part of the input.")
    for what, kept in (("exact", records.exact), ("tokens", records.tokens)):
        if records.types[what] > len(kept):
            found.append(f"The tables of mlm-{what} show the first {len(kept)} of {records.types[what]} records.")
    if counts["others"]:
        found.append(f"{counted(counts['others'], 'record')} of other programs {were(counts['others'])} left out.")
    return found
