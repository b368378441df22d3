"""Loops and filters pay with the fuel of one rendering."""

import pytest

from heartbeats.example import example_context
from heartbeats.render import render

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
