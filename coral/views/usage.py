"""Tokens and money, as commands and prompts say them."""

from __future__ import annotations

from collections.abc import Mapping


def tokens(count: object) -> str:
    """`812`, `12.3k`, `4.56M`."""
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < 1e15:
        return "0"
    if count < 1000:
        return f"{count:.0f}"
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1e6:.2f}M"


def money(dollars: object) -> str:
    """US dollars: `$12.34`, and more digits where there are no cents; empty when nothing is known."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or not 0 <= dollars < 1e12:
        return ""
    return f"${dollars:,.2f}" if dollars == 0 or dollars >= 0.995 else f"${dollars:.2g}"


def usage_line(usage: Mapping[str, object]) -> str:
    """`12.3k in, 4.56M from cache, 812 out, $0.12`."""
    cost = money(usage.get("cost"))
    figures = [f"{tokens(usage.get('input'))} in"]
    figures += [f"{tokens(usage['cached'])} from cache"] if usage.get("cached") else []
    return ", ".join([*figures, f"{tokens(usage.get('output'))} out", *([cost] if cost else [])])


def brief(spent: Mapping[str, object]) -> str:
    """`12.3k tokens, $0.12`; empty where nothing was used."""
    cost = money(spent.get("money"))
    used = [f"{tokens(spent['tokens'])} tokens"] if spent.get("tokens") else []
    return ", ".join([*used, *([cost] if cost else [])])
