"""Prompts that are too long: the longest sections are cut, and say how much is missing."""

from coral.views.brevity import LEAST_SHOWN, shortened


def sections(*lengths: int) -> list[dict[str, str]]:
    return [{"name": f"s{place}", "id": "", "text": "x" * length} for place, length in enumerate(lengths)]


def test_what_fits_stays_as_it_is() -> None:
    assert shortened(sections(1000, 2000), 3000) == sections(1000, 2000)
    assert shortened([], 0) == []


def test_only_the_longest_lose_anything_and_they_say_how_much() -> None:
    short, one, other = shortened(sections(900, 50_000, 90_000), 20_900)
    assert short == sections(900)[0]
    kept = one["text"].count("x")
    assert other["text"].count("x") == kept
    assert 8_000 < kept <= 10_000
    assert other["text"].endswith(f"{90_000 - kept} more characters of this section are left out.]")
    assert other["name"] == "s2"


def test_each_keeps_its_beginning_however_many_there_are() -> None:
    found = shortened(sections(*[3000] * 40), 100)
    assert [each["text"][: LEAST_SHOWN + 2] for each in found] == ["x" * LEAST_SHOWN + "\n\n"] * 40
