"""No template hangs, grows without end, reaches the interpreter, gets more than plain data or leaves no words."""

import time
import tracemalloc
from collections.abc import Mapping

import pytest
from hypothesis import given, settings, strategies as st
from prompt_contexts import empty_context

from heartbeats.dialect import ENVIRONMENT
from heartbeats.example import CONTEXT_NAMES, example_context
from heartbeats.heartbeat import is_blank
from heartbeats.render import problems, render

CONTEXT = example_context()
# As much as the supervisor could ever hand over: long texts, long lists.
CROWDED = {
    **CONTEXT,
    "message": "m" * 200_000,
    "results": [{"number": n, "feedback": "f" * 5_000, "score": 1.0} for n in range(5_000)],
    "notes": [{"name": f"n{n}", "title": "t" * 400, "author": "a"} for n in range(5_000)],
}


LONG = {**CONTEXT, "results": [{"n": n} for n in range(5_000)], "notes": list(range(5_000))}
LONG["task"] = {"description": "long " * 2_000}


def raw(template: str, reason: str, context: Mapping[str, object] = CONTEXT) -> None:
    """It reaches the agent as it was written, with the reason before it."""
    rendered = render(template, context)
    assert reason in rendered.warning, rendered.warning
    assert rendered.text.startswith("(This prompt could not be rendered")
    assert template.strip()[:200].rstrip() in rendered.text
    assert len(rendered.text) < 25_000


def test_a_prompt_with_loops_conditions_and_filters() -> None:
    template = """\
{% for each in results %}
#{{ each.number }}: {{ each.score }} ({{ each.delta|default("first") }}){% if loop.last %}.{% else %};{% endif %}

{% endfor %}
{% if own.stagnant > 3 and fleet.rank is not none %}Stuck.
{%- elif own.best >= 2 %}Best {{ own.best|round(1) }}.{% endif %}

Ahead: {{ fleet.others|sort(attribute="score", reverse=true)|join(", ", attribute="agent") }}; {{ task.name|upper }}
Gap: {{ (fleet.lead - own.best)|round(3) }}; {{ results[0]["number"] + 1 }}; {{ results|length }}
"""
    rendered = render(template, CONTEXT)
    assert rendered.warning == ""
    assert rendered.text == (
        "#14: 2.5189 ();\n#17: 2.5312 (+0.0123 against #14).\nBest 2.5.\n"
        "Ahead: agent-2, agent-3; RINGS\nGap: 0.01; 15; 2"
    )
    assert problems(template) == []


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ('Answer as {"json": 1}', 'Answer as {"json": 1}'),
        ("${HOME} and {x} and } { %} }}", "${HOME} and {x} and } { %} }}"),
        ("100 % sure #17", "100 % sure #17"),
        ("{% raw %}{{ as it is }}{% endraw %}", "{{ as it is }}"),
        ("{{ none }} {{ true }} {{ 0.1 + 0.2 }} {{ -3 }}", "none True 0.3 -3"),
        ('{{ attempt.metrics }} {{ ["a", 1] }}', '{"circles": 26, "smallest_radius": 0.0712} ["a", 1]'),
        ("{{ missing|default('nothing') }}", "nothing"),
        ("{{ 'yes' if missing is defined else 'no' }}", "no"),
        ("{{ task.name[:3] }}{{ task.name[-1] }}", "rins"),
        ("{{ missing.of.course|default('nothing') }}", "nothing"),
        ("{{ ''|default('empty', true) }} {{ ''|default('empty') }}.", "empty ."),
        ("{{ 1.55|round }} {{ 1.55|round(0) }} {{ 0.1|round(15) }}", "2 2 0.1"),
        ("{% for a in [1, 2] %}{% for b in [3, 4] %}{{ a + b }} {% endfor %}{% endfor %}", "4 5 5 6"),
        ("{% for a in results %}{% endfor %}{% for a in [1] %}{% for b in [2] %}{{ b }}{% endfor %}{% endfor %}", "2"),
        ("{{ " + "not " * 30 + "1 }}", "True"),
        ("{{ 12|upper }}", "12"),
        ("line\r\n{# unseen #}line", "line\nline"),
        ("\x00\x1b[31mred \ud800", "[31mred ?"),
    ],
)
def test_what_is_harmless_is_rendered(template: str, text: str) -> None:
    rendered = render(template, CONTEXT)
    assert (rendered.text, rendered.warning) == (text, "")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ('{{"json": 1}}', "line 1: expected token"),
        ("Hello\n{{ nobody }}", "line 2: 'nobody' is undefined"),
        ("{{ agent.secret }}", "line 1: there is no secret in it; there is: name"),
        ("{{ attempt.score.real }}", "there is no real in it"),
        ("{% if %}", "line 1: Expected an expression"),
        ("{{ words", "line 1: unexpected end"),
        ("words {{", "line 1: unexpected 'end of template'"),
        ("{{ skills[5] }}", "line 1: there is no 5 in it"),
        ("{{ missing.of.course }}", "line 1: 'missing' is undefined"),
        ("{{ agent[1] }}", "there is no 1 in it; there is: name"),
        ("{{ task.name['upper'] }}", "there is no upper in it"),
        ("{{ agent.first }}", "there is no first in it"),
        ("{% for a in results %}{{ loop.nextitem }}{% endfor %}", "there is no nextitem in it"),
        ("{{ ''|last }}", "line 1: the last of nothing"),
        ("{{ 1e300 + 1 }}", "a number is too large"),
        ("{{ -1e300 - 1 }}", "a number is too large"),
        ("{{ self }}", "the name self cannot be used"),
        ("{{ _name }}", "the name _name cannot be used"),
        ("{{ results|pprint }}", "the filter pprint cannot be used in a prompt; there are: default, first"),
        ("{{ results|join(*results) }}", "* and ** cannot be used"),
        ("{{ results|join(**agent) }}", "* and ** cannot be used"),
        ("{{ " + "not " * 50 + "1 }}", "it is nested too deeply"),
        ("{% for a in results recursive %}x{% endfor %}", "2 deep and not recursive"),
        ("{{ 1.5|round(16) }}", "from 0 to 15"),
        ("{{ loop }}x", "'loop' is undefined"),
        ("{{ []|first }} {{ ''|last }}", "line 1: the first of nothing"),
        ("{{ nobody|length }}", "line 1: 'nobody' is undefined"),
        ("{{ nobody|upper }}", "line 1: 'nobody' is undefined"),
        ("{% endfor %}", "unknown tag 'endfor'"),
        ("words {# unclosed", "Missing end of comment tag"),
        ("{% nonsense %}", "unknown tag 'nonsense'"),
        ("{{ 1 < 'a' }}", "not supported between"),
        ("{{ heartbeats|sort }}x", "not supported"),
        ("{{ 'a' + 'b' }}", "arithmetic is for numbers"),
        ("{{ [1] + [2] }}", "arithmetic is for numbers"),
        ("{{ -'a' }}", "arithmetic is for numbers"),
        ("{% for c in task.description %}x{% endfor %}", "not over a text"),
        ("{% for c in 5 %}x{% endfor %}", "something else"),
        ("{{ 1|round(-999999999) }}", "must be written out"),
    ],
)
def test_what_cannot_be_rendered_is_sent_as_it_was_written(template: str, reason: str) -> None:
    raw(template, reason)


BOMBS = [
    "{% for a in results %}{% for b in results %}x{% endfor %}{% endfor %}",
    "{% for a in results %}{% for b in results %}{% if a == b %}{% endif %}{% endfor %}{% endfor %}x",
    "{% for a in results %}{{ a.feedback }}{% endfor %}",
    "{% for a in results %}{% if a.feedback|list|sort|length %}{% endif %}{% endfor %}x",
    "{% for a in results if a.feedback in message %}{% endfor %}x",
    "{{ [" + "results," * 1_500 + "] }}",
    "{{ [" + "message," * 2_000 + "]|join }}",
    "{% for a in [" + "results," * 1_500 + "] %}{% for b in a %}{{ b }}{% endfor %}{% endfor %}",
    "{% for a in results %}{% endfor %}" * 550 + "x",
    "{% for a in results %}{% for b in notes %}{% endfor %}{% endfor %}" * 280 + "x",
    "{{ message|upper|lower|title|trim }}" * 500,
    "{% if message == message %}{% endif %}" * 500 + "x",
    "{{ results }}" * 1_500,
    *("{{ 1" + " + 1" * 4_900 + " }}", "{{ " + "not " * 4_900 + "1 }}", "{{ 1" + " < 1" * 4_900 + " }}"),
    *("{{ " + "(" * 6_000 + "1" + ")" * 6_000 + " }}", "{{ " + "[" * 6_000 + "1" + "]" * 6_000 + " }}"),
    *("{% if 1 %}" * 1_900, *("{% if 1 %}" * n + "x" + "{% endif %}" * n for n in (36, 900))),
    *("{{ agent" + ".name" * 3_900 + " }}", "{{ agent" + "|upper" * 3_000 + " }}"),
    "{% if 0 %}x" + "{% elif 0 %}x" * 1_500 + "{% endif %}",
    "{{ 1" + " if 1 else 1" * 1_500 + " }}",
    *("{{ " + "9" * 19_000 + " }}", "{{ '" + "a" * 19_000 + "' }}", "{{ " + "'a' " * 4_900 + "}}"),
    *("{{ {" + "'a': 1," * 2_800 + "} }}", "{{ results" + "[0:]" * 4_900 + " }}"),
    *("{" * 20_000, "{{" * 10_000, "{%" * 10_000, "{#" * 10_000, "{% raw %}" * 2_200, "{{ '" * 5_000, '{{ "\\' * 4_000),
    *(" " * 19_999 + "x", "\n" * 19_999 + "x", "{%- " + " " * 19_900 + "-%}", "x" + "\u200b" * 6_000),
]


@pytest.mark.parametrize("number", range(len(BOMBS)))
@pytest.mark.parametrize("context", [CONTEXT, CROWDED, LONG], ids=["usual", "crowded", "long"])
def test_no_template_takes_long_or_grows_without_end(number: int, context: Mapping[str, object]) -> None:
    template = BOMBS[number]
    assert len(template) <= 20_000
    # Processor time, as the test machine may be busy; a bomb that works takes minutes.
    begun = time.process_time()
    rendered = render(template, context)
    assert time.process_time() - begun < 3
    assert 0 < len(rendered.text) < 110_000
    assert any(char.isalnum() for char in rendered.text)


@pytest.mark.parametrize("template", ["{{ results }}" * 1_500, "{{ [" + "message," * 300 + "] }}", "{{ results }}" * 9])
def test_what_is_printed_is_not_kept_beyond_the_limit(template: str) -> None:
    render(template, CROWDED)  # compiled once, so that only the rendering is measured
    tracemalloc.start()
    render(template, CROWDED)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


BLANK = [
    *("", "   ", "\n\n", "...", "\x00\x01", "\u200b\ufeff", "\u3164", "{{ '\u2800' }}"),
    *("{# words #}", "{% if false %}words{% endif %}", "{{ '' }}", "{{ ' ' }}{{ message }}"),
    "{% for a in skills if false %}{{ a.name }}{% endfor %}",
]


@pytest.mark.parametrize("template", BLANK)
def test_a_prompt_never_arrives_empty(template: str) -> None:
    rendered = render(template, CONTEXT)
    assert "nothing is left of it" in rendered.warning
    words = "Look at what you tried last" if is_blank(template) else template
    assert words in rendered.text
    assert problems(template)


def test_a_prompt_or_an_output_that_is_too_long_is_cut_with_a_warning() -> None:
    rendered = render("word " * 5_000, CONTEXT)
    assert "longer than 20000 bytes" in rendered.warning
    assert len(rendered.text) < 6_000
    assert render("é" * 10_001, CONTEXT).warning
    assert not render("é" * 10_000, CONTEXT).warning
    rendered = render("{% for a in results %}{{ a.feedback }}{% endfor %}", CROWDED)
    assert rendered.warning == "it is longer than 100000 characters"
    assert rendered.text.startswith("fff")
    assert rendered.text.endswith("(cut here: too long)")


def test_nothing_of_the_context_is_changed_or_left_behind() -> None:
    before = repr(CONTEXT)
    render("{% for agent in results %}{{ agent.number }}{% endfor %}", CONTEXT)
    assert render("{{ agent.name }}", CONTEXT).text == "agent-1"
    assert repr(CONTEXT) == before


def test_problems_come_with_their_lines() -> None:
    assert problems("Fine: {{ own.best }}") == []
    assert problems("a\nb {{ nobdy }}\n{% set x = 1 %}") == [
        f"line 2: there is no name nobdy; there are: {', '.join(sorted(CONTEXT_NAMES))}",
        "line 3: {% set %} cannot be used in a prompt",
    ]
    assert "line 3" in problems("a\n\n{{ own.bset }}")[0]
    assert problems("{% for a in results %}{{ a.number }}, {{ loop.index }}{% endfor %}") == []
    assert problems("{% for a in results %}x{% endfor %}{{ a }}") == ["line 1: 'a' is undefined"]
    assert problems("x" * 20_001) == ["it is longer than 20000 bytes"]
    assert problems("{{ results|tojson }}")[0].startswith("line 1: ")


def test_the_examples_have_the_same_shape() -> None:
    full, empty = example_context(), empty_context()
    assert set(full) == set(empty) == CONTEXT_NAMES
    for name, value in full.items():
        other = empty[name]
        if isinstance(value, dict) and isinstance(other, dict):
            assert set(value) == set(other), name


WORDS = "{{ }} {% %} {# #} for in if else endif endfor results own.best loop join is not none x"
SIGNS = "' \" | ( ) [ ] . , 1 - + { } :"
pieces = st.sampled_from([*WORDS.split(), *SIGNS.split(), " ", "\n"])


@settings(max_examples=50)
@given(st.lists(pieces, max_size=30).map(" ".join) | st.text(max_size=60))
def test_of_any_template_the_agent_gets_some_text(template: str) -> None:
    rendered = render(template, CONTEXT)
    assert any(char.isalnum() for char in rendered.text)
    assert isinstance(problems(template), list)


FORBIDDEN = [
    *("{% set x = 1 %}x", "{% set x %}x{% endset %}", "{% with a = 1 %}x{% endwith %}", "{% do 1 %}"),
    *("{% macro m() %}x{% endmacro %}", "{% call m() %}x{% endcall %}", "{% filter upper %}x{% endfilter %}"),
    *("{% include 'reflect.md.j2' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}"),
    *("{% block b %}x{% endblock %}", "{% autoescape true %}x{% endautoescape %}", "{% trans %}x{% endtrans %}"),
    *("{{ agent() }}", "{{ agent.name.upper() }}", "{{ range(10) }}", "{{ super() }}"),
    *("{{ 'a' * 1000000000 }}", "{{ 9 ** 9 ** 9 }}", "{{ 1 // 0 }}", "{{ 1 / 0 }}", "{{ 'a' ~ 'b' }}"),
    *(
        "{{ '%s' % 'a' }}",
        "{{ '%99999999s'|format('a') }}",
        "{{ 'a'|center(1000000000) }}",
        "{{ 'a'|indent(1000000000) }}",
    ),
    *("{{ 'a'|replace('a', 'b') }}", "{{ message|urlize }}", "{{ agent|attr('__class__') }}"),
    *("{{ results|map('upper')|list }}", "{{ results|batch(1) }}", "{{ results|tojson }}", "{{ results|pprint }}"),
    *("{{ results|join(message) }}", "{{ results|join(*results) }}", "{{ results|sort(attribute=message) }}"),
    *("{{ 'x' is filter }}", "{{ 4 is divisibleby(0) }}", "{{ 'x' is sameas('x') }}"),
    "{% for a in results recursive %}{{ loop(a) }}{% endfor %}",
    "{% for x in results %}{% break %}{% endfor %}",
    "{% for a in results %}{% for b in results %}{% for c in results %}x{% endfor %}{% endfor %}{% endfor %}",
    *("{{ self }}", "{{ self._TemplateReference__context }}", "{{ _private }}", "{{ __import__ }}"),
    *("{{ 1e999 }}", "{{ 9223372036854775808 }}", "{{ 0x" + "f" * 10_000 + " }}"),
]


@pytest.mark.parametrize("template", FORBIDDEN)
def test_what_is_not_in_the_dialect_is_refused(template: str) -> None:
    assert render(template, CONTEXT).warning
    assert problems(template)


ESCAPES = [
    *("{{ ''.__class__.__mro__ }}", "{{ ''['__class__'] }}", "{{ (1).__class__ }}"),
    *("{{ agent.__class__ }}", "{{ agent['__class__'] }}", "{{ agent.get }}", "{{ agent.keys }}"),
    *("{{ results.append }}", "{{ results.__len__ }}", "{{ missing.__init__ }}"),
    *(f"{{% for a in results %}}{{{{ loop{use} }}}}{{% endfor %}}" for use in ("", ".__init__", ".cycle")),
    "{% for a in results %}{{ loop._iterator }}{% endfor %}",
    *(f"{{{{ {name} }}}}" for name in ("loop", "config", "request", "cycler", "lipsum", "joiner", "namespace")),
    *(f"{{{{ {name} }}}}" for name in ("range", "dict", "environment", "context")),
]


@pytest.mark.parametrize("template", ESCAPES)
def test_no_template_shows_anything_of_the_interpreter(template: str) -> None:
    rendered = render(template, CONTEXT)
    assert rendered.warning
    shown = rendered.text.replace(template, "")
    for trace in ("object at", "<class", "built-in", "bound method", "function", "LoopContext"):
        assert trace not in shown


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{" + "1+" * 6000 + "1}}", "it has more than 10,000 words and signs in its braces"),
        ("{{ 1" + "|round" * 3000 + "}}", "it is nested too deeply"),
        ("{% if " + "-a" * 5_500, "it has more than 10,000 words and signs in its braces"),
    ],
)
def test_what_is_refused_is_refused_before_it_is_compiled_and_looked_at_once(
    template: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parses: list[str] = []
    monkeypatch.setattr(ENVIRONMENT, "compile", None)
    parse = ENVIRONMENT.parse
    monkeypatch.setattr(ENVIRONMENT, "parse", lambda source: parses.append(source) or parse(source))
    for _ in range(3):
        assert render(template, CROWDED).warning.endswith(why)
    assert len(parses) <= 1


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in results %}{% for b in notes %}{% if a == b %}{% endif %}{% endfor %}{% endfor %}x",
        "{% for a in results %}" + "{% if message == message %}{% endif %}" * 20 + "{% endfor %}x",
        "{% for a in results %}{% if results|sort(attribute='n') %}{% endif %}{% endfor %}x",
        "{% for a in results %}{% if results|list %}{% endif %}{% endfor %}x",
        "{% for a in results %}{% for b in [1] %}{% if task.description|upper %}{% endif %}{% endfor %}{% endfor %}x",
        "{% for a in results %}{% endfor %}" * 400 + "x",
    ],
)
def test_loops_run_on_fuel(template: str) -> None:
    assert "it loops too long" in render(template, LONG).warning


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop"])
def test_a_key_is_a_key_whatever_methods_a_dict_has(name: str) -> None:
    assert render(f"{{{{ attempt.metrics.{name} }}}}", {"attempt": {"metrics": {name: 7}}}).text == "7"


def test_the_limits_of_what_comes_in() -> None:
    context = {"text": "x" * 30_000, "items": list(range(3_000)), "big": 2**63, "fits": 2**63 - 1, "dict": {}}
    assert render("{{ items|length }} {{ text|length }}", context).text == "1000 20010"
    assert render("{{ big }} {{ fits }}", context).text == "a huge integer 9223372036854775807"
    assert render("{{ text[-10:] }}", context).text == "... (cut)"
    crowd = {"a": ["x" * 20_000] * 100, "b": ["late"]}
    assert render("{{ a|length }} {{ b|default('nothing') }}", crowd).text == "20 nothing"
    nested: list[object] = [1]
    for _ in range(20):
        nested = [nested]
    assert render("{{ nested }}", {"nested": nested}).text.startswith('[[[[[[["[')


class Trap:
    def __str__(self) -> str:
        return "a trap"

    def open(self) -> str:
        raise AssertionError("a template has called a method")


def test_only_plain_data_comes_in() -> None:
    assert render("{{ trap }}", {"trap": Trap()}).text == "a trap"
    assert render("{{ trap.open }}", {"trap": Trap()}).warning
    assert render("{{ t }}", {"t": (1, 2.50, None, "é")}).text == '[1, 2.5, null, "é"]'
    deep: list[object] = []
    deep.append(deep)
    assert len(render("x {{ deep }}", {"deep": deep}).text) < 500
