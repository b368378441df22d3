"""`coral help`: shows a page of the documentation in the terminal, the help of a command that has no page, or the man
page."""

import argparse
import sys

from coral.cli import COMMANDS, parser_of
from coral.cli.help.pages import page_of, pages
from coral.cli.parser import print_json
from coral.errors import CoralError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="*", metavar="TOPIC", help="a topic, or a command")
    parser.add_argument("--topics", action="store_true", help="list the topics")
    parser.add_argument("--man", action="store_true", help="print the man page: coral help --man | man -l -")
    parser.add_argument("--json", action="store_true", help="for programs: topic, title, text; or all topics")


def run(args: argparse.Namespace) -> int:
    if args.man:
        from coral.cli.help.commands import man_page

        print(man_page(), end="")
        return 0
    if args.topics or not args.topic:
        return _list(as_json=args.json)
    topic = " ".join(args.topic)
    if args.topic[0] in COMMANDS and topic not in pages():
        return _command(args.topic)
    page = page_of(topic)
    if args.json:
        return print_json({"topic": page.topic, "title": page.title, "text": page.markdown()})
    if not sys.stdout.isatty():
        print(page.plain(), end="")
        return 0
    from coral.cli.ui.markdown import markdown
    from coral.cli.ui.table import console

    console().print(markdown(page.plain()))
    return 0


def _list(*, as_json: bool) -> int:
    known = {page.topic: page.title for page in pages().values()}
    if as_json:
        return print_json(known)
    width = max(map(len, known))
    print("\n".join(f"  {topic:<{width}}  {title}" for topic, title in known.items()))
    return 0


def _command(words: list[str]) -> int:
    """Print the help of a command: `coral help heartbeat set` is `coral heartbeat set --help`."""
    name, *verbs = words
    parser = parser_of(name)
    for verb in verbs:
        known = parser.known_verbs()
        if verb not in known:
            raise CoralError(f"cannot show help on {' '.join(words)!r}", f"`coral {name} --help` explains {name}")
        parser = known[verb]
    print(parser.format_help(), end="")
    return 0
