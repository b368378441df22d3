"""The command line as a page, a man page and a completion: all of it from the parsers."""

import pytest

from coral.cli import EXIT_CODES, parser_of
from coral.cli.help.commands import arguments, command_reference, man_page, parsers, whole_parser

ALL = parsers(whole_parser())[1:]


def test_the_reference_has_each_command_and_verb_with_its_arguments() -> None:
    said = command_reference()
    for parser in ALL:
        assert f"# `{parser.prog}`\n" in said
        assert f"\n{parser.example}\n" in said
    assert "| `--stagnant N` | after N attempts in a row without improvement |" in said
    assert "| 4 | it ended, and its exit code is not known |" in said


def test_names_keep_their_capitals_in_the_first_sentence() -> None:
    text = command_reference()
    assert "The run as one HTML file" in text
    assert "heartbeats.Pulse." in text
    assert "heartbeats.Pulse." in (parser_of("watch").description or "")


@pytest.mark.parametrize("parser", ALL, ids=lambda parser: parser.prog)
def test_every_option_has_a_sentence(parser) -> None:
    assert [names for names, meaning in arguments(parser) if not meaning and names.startswith("-")] == []


def test_the_man_page_has_all_of_it_and_nothing_that_roff_would_obey() -> None:
    page = man_page()
    assert page.startswith(".TH CORAL 1 ")
    assert all(f".SS {parser.prog}".replace("-", "\\-") in page for parser in ALL)
    assert all(f"\n.B {code}\n" in page for code in EXIT_CODES)
    macros = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert macros == {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I", ".RI", ".br"}
