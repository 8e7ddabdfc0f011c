"""Tables of any content: no figure and no name is cut, at any width; CSV and Markdown."""

import csv
import io
import re
import sys

from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from mlmglauber.commands.shared.table_forms import as_csv, as_markdown, as_text
from mlmglauber.commands.shared.tables import (
    Column,
    Table,
    count,
    interval,
    name,
    number,
    ratio,
    sentence,
    several,
    share,
)
from mlmglauber.stream.printable import printable

sys.path.insert(0, str(ROOT / "man"))

WIDTHS = (40, 60, 80, 120)
LONG = "a-model-with-a-name-that-no-terminal-is-wide-enough-for/and-a-folder-before-it/checkpoint-1000000"
ODD = 'id "one", | two_three\ttab'
cells = st.one_of(
    st.floats(-1e9, 1e9).map(number), st.none().map(number), st.floats(0, 1).map(share), st.integers().map(count),
    st.builds(interval, st.floats(0, 1e6), st.none() | st.floats(0, 1e6), st.floats(0, 1e6)),
    st.builds(ratio, st.integers(0, 99), st.integers(0, 99)), st.text(max_size=60).map(name),
    st.sampled_from(["", "a pair did not meet", "words that go on and on until no line is long enough for them all"]
                    ).map(sentence),
    st.sampled_from(["東京都の天気は晴れ時々曇り", "🙂 x", LONG, ODD, "[bold]x[/bold]"]).map(name))
headings = st.sampled_from(["tau", "n", "C = T / (n ln n)", "expected in random order", "p, faster than n ln n",
                            "東京 都", "", LONG])


@st.composite
def tables_of_anything(draw):
    names = draw(st.lists(headings, min_size=1, max_size=12))
    rows = draw(st.lists(st.lists(cells, min_size=len(names), max_size=len(names)), min_size=1, max_size=4))
    return Table("Anything, and more of it", [Column(heading, "", lambda row, k=k: row[k])
                                              for k, heading in enumerate(names)], rows)


def words_of(shown):
    """A text without the lines of a table, its words with single spaces between them, line by line."""
    return [" ".join(re.sub("[│┃┏┓┗┛┡┩└┘├┤━─┳┻╇┴]", " ", line).split()) for line in shown.splitlines()]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(table=tables_of_anything(), width=st.sampled_from([*WIDTHS, 1, 20, 200, None]))
def test_no_cell_is_cut_at_any_width(table, width):
    shown = as_text([table], width, False)
    lines = words_of(shown)
    whole = " ".join(lines)
    for row in table.cells():
        for cell in row:
            text = " ".join(re.sub("[│┃┏┓┗┛┡┩└┘├┤━─┳┻╇┴]", " ", printable(cell.text)).split())
            if cell.broken:
                assert all(any(word in line for line in lines) for word in text.split())
            else:  # in the title words may stand on two lines
                assert any(text in line for line in lines) or text in whole
    assert "…" not in shown or any("…" in cell.text for row in table.cells() for cell in row)
    if width is not None:
        pieces = [printable(column.heading) for column in table.columns]
        pieces += [printable(cell.text) for row in table.cells() for cell in row if not cell.broken]
        longest = max([4 + cell_len(piece) for piece in pieces], default=0)  # what may not be broken may stand out
        assert all(cell_len(line) <= max(width, longest, 16) for line in shown.splitlines())


def simple(rows, **more):
    return Table("Title", (Column("tau", "", lambda row: number(row[0])), Column("model", "", lambda row: name(row[1])),
                           Column("mean", "", lambda row: interval(*row[2]), **more))).of(rows)


def test_what_all_rows_share_stands_in_the_title():
    rows = [(0.5, "m", (0.1, 0.0, 0.2)), (1.0, "m", (0.1, 0.0, 0.2))]
    shown = as_text([simple(rows)], None, False).splitlines()
    assert shown[0] == "Title (model m, mean 0.10 [0.00, 0.20])"
    assert shown[2].split() == ["┃", "tau", "┃"]
    assert "mean" in as_text([simple(rows, stays=True)], None, False).splitlines()[2]
    one = as_text([simple(rows[:1])], None, False).splitlines()
    assert one[0] == "Title"  # one row alone would leave no table
    assert one[2].split() == ["┃", "tau", "┃", "model", "┃", "mean", "┃"]
    assert as_text([simple([rows[0]] * 2)], None, False).splitlines()[0] == "Title"


def test_lines_then_spaces_then_one_field_a_line():
    table = simple([(0.5, "a", (0.1, 0.0, 0.2)), (1.0, "b", (None, None, None))])
    assert "│ 0.50 │ a     │ 0.10 [0.00, 0.20] │" in as_text([table], 36, False)
    assert "\n0.50  a      0.10 [0.00, 0.20]\n" in as_text([table], 32, False)
    assert "tau    0.50\nmodel  a\nmean   0.10 [0.00, 0.20]\n\ntau    1.00\n" in as_text([table], 27, False)
    assert "tau    0.50\nmodel  a\nmean\n    0.10 [0.00, 0.20]\n" in as_text([table], 20, False)


def test_csv_has_all_digits_and_a_column_for_each_number():
    rows = [(1 / 3, ODD, (0.123456789, None, 2.0)), (1.0, 'b\x1b[2J"', (None, None, None))]
    found = list(csv.reader(io.StringIO(as_csv([simple(rows)]))))
    assert found == [["tau", "model", "mean", "mean low", "mean high"],
                     [str(1 / 3), ODD.replace("\t", "\\t"), "0.123456789", "", "2.0"],
                     ["1.0", 'b\\x1b[2J"', "", "", ""]]
    two = Column("a", "", lambda row: several({"x": share(0.5), "y": count(2)}))
    parts = Table("Parts, of which several", (Column("hits", "", lambda row: ratio(3, 16)), two), [0])
    assert as_csv([parts]) == "hits,hits of,a x,a y\n3,16,0.5,2\n"
    both = list(csv.DictReader(io.StringIO(as_csv([simple(rows[:1]), parts]))))
    assert [(row["table"], row["tau"], row["a x"]) for row in both] == [("Title", str(1 / 3), ""), ("Parts", "", "0.5")]
    assert as_csv([simple([])]) == ""


def test_markdown_gives_no_name_a_meaning():
    shown = as_markdown([simple([(0.5, "<pad>|a_b*c`d$e", (0.1, None, 0.2)), (1.0, "[x](y)", (None, None, None))])])
    assert shown == ("Title\n\n| tau | model | mean |\n| ---: | --- | ---: |\n"
                     "| 0.50 | \\<pad\\>\\|a\\_b\\*c\\`d\\$e | 0.10 [-, 0.20] |\n| 1.00 | [x]\\(y) | - |\n")
