"""Templates get plain data of a bounded size, and nothing else."""

import pytest

from heartbeats.render import render


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
