"""Renders Markdown that agents wrote as HTML that can run nothing: no raw HTML, no pictures, and links only to the
web, not to this machine."""

import re
import socket
from functools import cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from coral.cli.report.markup import Html
from coral.views.format import clean

WEB, SAFE = ("http://", "https://"), ("mailto:", "#")
# A host of the web: a name with a dot, and no address in any notation. Browsers send the dashboard's cookie to every
# port of its host, and an agent may listen at one.
_HOST = re.compile(r"(?:[a-z0-9_-]+\.)+(?!localhost)[a-z][a-z0-9-]*\.?")
DEEPEST = 20  # levels of lists and quotes


class _Safe(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        """Return whether a link may lead to this address; a link that may not is shown as text."""
        address = url.strip().lower()
        return address.startswith(SAFE) or (address.startswith(WEB) and _is_of_web(address))


def _is_of_web(address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return _HOST.fullmatch(host) is not None and host.rstrip(".") != socket.gethostname().lower()


def rendered(text: str) -> Html:
    """Return Markdown as HTML. Its headings are two levels lower than written, to fit below those of the page."""
    return Html(_renderer().render(clean(text)))


@cache
def _renderer() -> MarkdownIt:
    made = _Safe("commonmark", {"html": False, "maxNesting": DEEPEST}, renderer_cls=RendererHTML)
    made.enable("table").disable(["image", "html_block", "html_inline"])
    made.core.ruler.push("below", _lower_headings)
    return made


def _lower_headings(state: object) -> None:
    for token in getattr(state, "tokens", ()):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 2)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noopener noreferrer")
