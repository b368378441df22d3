"""Makes HTML and SVG from elements. Every text is escaped: only what this module made is taken as markup."""

from html import escape

from coral.views.format import clean


class Html(str):
    """Markup that is safe to put into a page."""

    __slots__ = ()


Child = object  # Html as it is, None and False not at all, anything else as text
VOID = frozenset({"meta", "br", "hr"})


def element(tag: str, *children: Child, **attributes: object) -> Html:
    """Return `<tag name="value">children</tag>`. In the name of an attribute, a last `_` is dropped and other ones
    become `-`. Attributes whose value is None or empty are left out."""
    opened = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(clean(value))}"'
        for name, value in attributes.items()
        if value is not None and value != ""
    )
    if tag in VOID:
        return Html(f"<{tag}{opened}>")
    return Html(f"<{tag}{opened}>{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    return Html("".join(_shown(child) for child in children))


def _shown(child: Child) -> str:
    if isinstance(child, Html):
        return child
    return "" if child is None or child is False else escape(clean(child))
