"""What the language of prompts does not have, what no template can reach, and what loops and filters pay."""

import pytest

from heartbeats.example import example_context
from heartbeats.render import problems, render

CONTEXT = example_context()


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


LONG = {
    **example_context(),
    "results": [{"n": n} for n in range(5_000)],
    "notes": list(range(5_000)),
    "task": {"description": "long " * 2_000},
}


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
