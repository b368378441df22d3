"""What the sections of a report are made of: sections, tables with headers, pairs of name and value."""

from collections.abc import Iterable, Sequence

from coral.cli.report.markup import Child, Html, element


def section(name: str, title: str, *children: Child) -> Html:
    return element("section", element("h2", title), *children, id=name)


def data_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Child]]) -> Html:
    """A table with headers; a column named `>n` holds figures. The first cell of a row is its header."""
    marks = ["figure" if name.startswith(">") else "" for name in columns]
    head = [
        element("th", name.removeprefix(">"), scope="col", class_=mark)
        for name, mark in zip(columns, marks, strict=True)
    ]
    body = [element("tr", *_cells(row, marks)) for row in rows]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", *head)), element("tbody", *body)
    )
    # Scrolled by keyboard as well, where it is wider than the page.
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
