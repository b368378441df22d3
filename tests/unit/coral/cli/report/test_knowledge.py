"""Markdown of agents: rendered, and harmless."""

import pytest

from coral.cli.report.knowledge import rendered
from coral.cli.report.markup import Html, element


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "x <img src=x onerror=alert(1)> y",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html,x)",
        "[a](file:///etc/passwd)",
        "![a](javascript:alert(1))",
        "<javascript:alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]",
        "[a](vbscript:x)",
        "[a](//example.org/x)",
    ],
)
def test_nothing_runs_and_nothing_is_loaded(text: str) -> None:
    made = rendered(text)
    assert not {"<script", "<img", "href"} & {part for part in ("<script", "<img", "href") if part in made}


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:9", "127.1", "2130706433", "0x7f.1", "0", "[::1]:9", "[::ffff:127.0.0.1]", "127.0.0.1."),
        *("localhost:9", "LOCALHOST.", "x.localhost", "box", "a@127.0.0.1", "%31%32%37.0.0.1", "/127.0.0.1", "[::1"),
        *("\uff11\uff12\uff17.0.0.1", "example.org\\@127.0.0.1", "this.machine", ""),
    ],
)
def test_no_link_leads_to_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may listen at a port of it, to which a browser would send the dashboard's cookie."""
    monkeypatch.setattr("socket.gethostname", lambda: "This.machine")
    for scheme in ("http", "HTTPS"):
        assert "href" not in rendered(f"[plot](<{scheme}://{host}/x>)")


def test_what_is_kept_of_markdown() -> None:
    made = rendered("# One\n\n- a **b** `c`\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n[web](https://example.org/?a=1&b=2)")
    for part in ("<h3>One</h3>", "<strong>b</strong>", "<code>c</code>", "<td>1</td>"):
        assert part in made
    assert '<a href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer">web</a>' in made


def test_depth_is_bounded() -> None:
    assert rendered(">" * 20_000 + "x").count("<blockquote>") <= 21
    assert len(rendered("[" * 20_000)) < 40_000


def test_all_text_is_escaped() -> None:
    made = element("p", "<b>&\"'\x1b[2J\ud800", Html("<i>"), None, title='"><script>', data_x="")
    assert made == '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&quot;&#x27;[2J?<i></p>'
    assert element("th", "x", class_="a", scope="row") == '<th class="a" scope="row">x</th>'
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'
