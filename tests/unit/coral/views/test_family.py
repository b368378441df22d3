"""Who built on whom: what a tree shows of many attempts, and how its lines lie."""

from hypothesis import given, strategies as st

from attempts.index.history import Child
from attempts.record import Direction, Verdict
from coral.views.family import FamilyTree


def child(number: int, parent: int | None, score: float | None = None, verdict: Verdict = Verdict.WORSE) -> Child:
    return Child(number, parent, "ann" if parent is not None else "", verdict, score)


def drawn(tree: FamilyTree, chosen: list[int], best: int | None) -> list[str]:
    return [
        f"{leaf.prefix}{leaf.child.number}" + (f" +{leaf.between}" if leaf.between else "") + f" {leaf.hidden}"
        for leaf in tree.layout(chosen, best)
    ]


def test_the_line_of_the_best_goes_straight_down() -> None:
    tree = FamilyTree(
        [
            child(0, None, 1),
            child(1, 0, 2),
            child(2, 0, 3),
            child(3, 1, 4),
            child(4, 1, 9),
            child(5, 2, 5),
            child(6, 3, 6),
        ],
        Direction.MAXIMIZE,
    )
    assert drawn(tree, list(range(7)), 6) == ["0 0", "├─ 2 0", "│  5 0", "1 0", "├─ 4 0", "3 0", "6 0"]
    assert drawn(tree, list(range(7)), None) == ["0 0", "├─ 2 0", "│  5 0", "1 0", "├─ 3 0", "│  6 0", "4 0"]


def test_whose_work_an_attempt_was_built_on() -> None:
    authors = ["", "ann", "ann", "bob", "ann", "ann"]
    members = [
        Child(number, number - 1 if number else None, agent, Verdict.WORSE, 1.0) for number, agent in enumerate(authors)
    ]
    tree = FamilyTree(members, Direction.MAXIMIZE)
    assert [(step.number, step.agent) for step in tree.handed_on(5)] == [(5, "ann"), (3, "bob"), (2, "ann"), (0, "")]
    assert [step.number for step in tree.handed_on(1)] == [1, 0]
    assert tree.handed_on(9) == []


def test_what_is_not_shown_is_counted() -> None:
    tree = FamilyTree([child(number, number - 1 if number else None) for number in range(9)], Direction.MAXIMIZE)
    assert drawn(tree, [0, 5, 8], 8) == ["0 1", "5 +4 1", "8 +2 0"]


def test_a_run_shows_where_its_best_comes_from_first() -> None:
    members = [child(0, None, 1.0, Verdict.NEW_BEST)]
    members += [
        child(number, number - 1, 1.0 + number, Verdict.NEW_BEST if number % 3 == 0 else Verdict.WORSE)
        for number in range(1, 10)
    ]
    members += [child(10, 0, 1.5), child(11, 10, 1.6)]
    tree = FamilyTree(members, Direction.MAXIMIZE)
    assert tree.of_run(9, [9, 11], 3) == [9, 0, 6]
    assert set(tree.of_run(9, [9, 11], 5)) == {9, 0, 6, 3, 11}
    assert set(tree.of_run(9, [9, 11], None)) == set(range(12))
    assert tree.of_run(None, [], 5) == [0, 3, 6, 9]


def test_around_an_attempt_are_its_parents_and_what_came_of_it() -> None:
    tree = FamilyTree(
        [child(0, None), child(1, 0), child(2, 1, 5.0), child(3, 2, 7.0), child(4, 2, 6.0), child(5, 0)],
        Direction.MINIMIZE,
    )
    assert set(tree.around(2, None)) == {0, 1, 2, 3, 4}
    assert tree.around(2, 4) == [2, 0, 1, 4], "the better of the two"
    assert tree.descendants(1) == [2, 3, 4]
    assert tree.around(99, 4) == []


@given(st.lists(st.tuples(st.integers(0, 50), st.one_of(st.none(), st.floats(-5, 5))), max_size=50), st.integers(1, 60))
def test_each_chosen_attempt_has_one_line_below_its_parent(parents: list[tuple[int, float | None]], most: int) -> None:
    members = [child(0, None, 0.0)]
    members += [child(number, parent % number, score) for number, (parent, score) in enumerate(parents, start=1)]
    tree, best = FamilyTree(members, Direction.MAXIMIZE), len(members) - 1
    chosen = tree.of_run(best, [], None)[:most]
    leaves = list(tree.layout(chosen, best))
    places = {leaf.child.number: place for place, leaf in enumerate(leaves)}
    assert sorted(places) == sorted(chosen)
    for leaf in leaves:
        shown = [number for number in tree.line(leaf.child.number)[1:] if number in places]
        assert not shown or places[shown[0]] < places[leaf.child.number]


def test_a_long_line_needs_no_stack() -> None:
    tree = FamilyTree([child(number, number - 1 if number else None) for number in range(50_000)], Direction.MAXIMIZE)
    leaves = list(tree.layout(tree.of_run(49_999, [], None), 49_999))
    assert len(leaves) == 50_000
    assert {leaf.prefix for leaf in leaves} == {""}
