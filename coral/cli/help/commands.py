"""Makes the reference of the command line from the parsers: as Markdown, and as a man page."""

import argparse
from collections.abc import Iterator

from coral import __version__
from coral.cli import COMMANDS, EXIT_CODES, GROUPS, load, parser_of
from coral.cli.parser import Parser


def whole_parser() -> Parser:
    """Return one parser with all commands and their verbs."""
    root = Parser(prog="coral")
    root.add_argument("-V", "--version", action="store_true", help="print the version")
    commands = root.verbs()
    for name, (_, text, example) in COMMANDS.items():
        about = f"{text[0].upper()}{text[1:]}."
        load(name).add_arguments(commands.add_parser(name, help=text, description=about, example=example))
    return root


def parsers(parser: Parser) -> list[Parser]:
    """Return a parser and the parsers of all verbs below it."""
    return [parser, *(below for verb in parser.known_verbs().values() for below in parsers(verb))]


def command_reference() -> str:
    """Return Markdown with a heading for each group, command and verb, with usage, arguments, exit codes and an
    example."""
    return "\n".join(_reference())


def _reference() -> Iterator[str]:
    for group, title in GROUPS.items():
        yield f"## {title}\n"
        for name, (of, _, _) in COMMANDS.items():
            if of == group:
                yield from _command(parser_of(name), "###")


def _command(parser: Parser, heading: str) -> Iterator[str]:
    yield f"{heading} `{parser.prog}`\n"
    yield f"{parser.description or ''}\n"
    yield f"```text\n{parser.format_usage().removeprefix('usage: ').rstrip()}\n```\n"
    rows = [f"| `{names}` | {meaning} |".replace(" | | ", " \\| ") for names, meaning in arguments(parser)]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])
    if parser.exit_codes:
        codes = [f"| {code} | {meaning} |" for code, meaning in parser.exit_codes.items()]
        yield "\n".join(["| exit code | meaning |", "|---|---|", *codes, ""])
    yield f"```text\n{parser.example}\n```\n"
    for verb in parser.known_verbs().values():
        yield from _command(verb, f"{heading}#")


def arguments(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Return (the argument as it is typed, its meaning) for each argument but --help and the verbs."""
    return [
        (_written(action), (action.help or "") % {**vars(action), "prog": parser.prog})
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]


def _written(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
    value = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        return value
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def man_page() -> str:
    """Return the man page of `coral`, for `man -l -`."""
    return "\n".join(_man()) + "\n"


def _man() -> Iterator[str]:
    yield f'.TH CORAL 1 "" "coral {__version__}" "User Commands"'
    yield ".SH NAME\ncoral \\- runs a fleet of coding agents on one optimization problem"
    yield ".SH SYNOPSIS\n.B coral\n.I COMMAND\n.RI [ ARGUMENT \\~...]\n.br\n.B coral help\n.I TOPIC"
    for group, title in GROUPS.items():
        yield f'.SH "{title.upper()}"'
        for name, (of, _, _) in COMMANDS.items():
            if of == group:
                yield from _man_command(parser_of(name))
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield f".TP\n.B {code}\n{_roff(meaning)}"


def _man_command(parser: Parser) -> Iterator[str]:
    yield f".SS {_roff(parser.prog)}\n{_roff(parser.description or '')}"
    yield f".PP\n{_roff(' '.join(parser.format_usage().split()[1:]))}"
    for names, meaning in arguments(parser):
        yield f".TP\n.B {_roff(names)}\n{_roff(meaning)}"
    for code, meaning in parser.exit_codes.items():
        yield f".TP\nexit code {code}\n{_roff(meaning)}"
    yield f".PP\nExample: {_roff(parser.example)}"
    for verb in parser.known_verbs().values():
        yield from _man_command(verb)


def _roff(text: str) -> str:
    """Escape what roff would take for a command."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
