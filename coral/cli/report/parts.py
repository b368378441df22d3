"""The building blocks of a report: sections, tables with headers, and pairs of name and value."""

from collections.abc import Iterable, Sequence

from coral.cli.report.markup import Child, Html, element


def section(name: str, title: str, *children: Child) -> Html:
    return element("section", element("h2", title), *children, id=name)


def data_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Child]]) -> Html:
    """Return a table with headers. A column named `>n` holds figures. The first cell of a row is the row's header."""
    marks = ["figure" if name.startswith(">") else "" for name in columns]
    head = [
        element("th", name.removeprefix(">"), scope="col", class_=mark)
        for name, mark in zip(columns, marks, strict=True)
    ]
    body = [element("tr", *_cells(row, marks)) for row in rows]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", *head)), element("tbody", *body)
    )
    # With a tabindex, so that a table wider than the page can be scrolled by keyboard, too.
    return element("div", table, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _cells(row: Sequence[Child], marks: Sequence[str]) -> Iterable[Html]:
    for place, (cell, mark) in enumerate(zip(row, marks, strict=True)):
        if place == 0:
            yield element("th", cell, scope="row", class_=mark)
        else:
            yield element("td", cell, class_=mark)


def pairs(items: Iterable[tuple[str, Child]]) -> Html:
    return element(
        "dl", *(element("div", element("dt", name), element("dd", value)) for name, value in items), class_="pairs"
    )
