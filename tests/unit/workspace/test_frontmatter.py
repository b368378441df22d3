"""The head of a note: any YAML reader understands what we write, and we read what people write."""

import pytest
from hypothesis import given, strategies as st
from ruamel.yaml import YAML

from workspace import frontmatter

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.one_of(TEXT, st.integers(), st.booleans(), st.none(), st.lists(TEXT, max_size=4))
FRONTS = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), VALUES, max_size=5)


@given(front=FRONTS, body=TEXT)
def test_a_head_is_yaml_that_any_reader_understands(front: dict[str, object], body: str) -> None:
    text = frontmatter.write(front, body)  # type: ignore[arg-type]
    head = text.removeprefix("---\n").partition("\n---\n")[0] if front else ""
    assert (YAML(typ="safe", pure=True).load(head) or {}) == front
    mine, rest = frontmatter.split(text)
    assert rest.strip("\n") == body.strip().strip("\n") or not body.strip()
    for key, value in front.items():
        if isinstance(value, str | list):
            assert mine[key] == value


@given(text=st.text(max_size=200), head=st.text(alphabet="-: \n\"'[]|>#ab,\\", max_size=80))
def test_reading_a_head_never_fails(text: str, head: str) -> None:
    for content in (text, f"---\n{text}", f"---\n{head}\n---\n{text}"):
        front, body = frontmatter.split(content)
        assert isinstance(body, str)
        assert all(isinstance(frontmatter.words(value), str) for value in front.values())


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("k: plain words", "plain words"),
        ("k: why #17 won  # a remark", "why #17 won"),
        ("k: 'it''s'", "it's"),
        ('k: "a: \\"b\\""', 'a: "b"'),
        ("k: [3, '#17', \"x, y\"]", ["3", "#17", "x, y"]),
        ("k:\n  - 3\n  - 17", ["3", "17"]),
        ("k:\n- 3\n- 17", ["3", "17"]),
        ("k: >\n  folded\n  text", "folded text"),
        ("k: |-\n  one\n  two", "one\ntwo"),
        ("k: goes\n  on", "goes on"),
        ("K:", ""),
        ('k: "never closed', "never closed"),
    ],
)
def test_heads_as_people_write_them(line: str, value: str | list[str]) -> None:
    assert frontmatter.split(f"---\n{line}\nother: x\n---\nbody") == ({"k": value, "other": "x"}, "body")
