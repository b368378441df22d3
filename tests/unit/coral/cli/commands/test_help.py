"""`coral help`: a page, the help of a command, the topics, the man page."""

import json

from coral.cli import main
from coral.cli.commands import help as help_command
from coral.cli.help.commands import man_page
from coral.cli.help.pages import page_of, pages


def test_help_prints_a_page_a_command_and_the_topics(capsys) -> None:
    assert main(["help", "trust"]) == 0
    assert capsys.readouterr().out == page_of("trust").plain()
    assert main(["help", "heartbeat", "set"]) == 0
    assert capsys.readouterr().out.startswith("usage: coral heartbeat set ")
    assert main(["help", "--topics"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(pages())
    assert main(["help", "heartbeat", "sett"]) == 1
    assert "cannot show help on 'heartbeat sett'" in capsys.readouterr().err


def test_a_page_goes_before_a_command_of_its_name(capsys, monkeypatch) -> None:
    known = {**pages(), "audit": page_of("trust")}
    monkeypatch.setattr(help_command, "pages", lambda: known)
    monkeypatch.setattr(help_command, "page_of", known.__getitem__)
    assert main(["help", "audit"]) == 0
    assert capsys.readouterr().out == page_of("trust").plain()


def test_help_for_programs_is_json(capsys) -> None:
    assert main(["help", "trust", "--json"]) == 0
    page = page_of("trust")
    assert json.loads(capsys.readouterr().out) == {"topic": "trust", "title": page.title, "text": page.markdown()}
    assert main(["help", "--topics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {topic: page.title for topic, page in pages().items()}


def test_the_man_page_is_printed(capsys) -> None:
    assert main(["help", "--man"]) == 0
    assert capsys.readouterr().out == man_page()
