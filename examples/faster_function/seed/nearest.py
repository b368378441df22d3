"""For each query, the word that is nearest to it by edit distance. Correct, and slow."""


def nearest(words: list[str], queries: list[str]) -> list[int]:
    """The place in `words` of the word with the smallest distance to each query; of equally near ones the first."""
    return [min(range(len(words)), key=lambda place: distance(words[place], query)) for query in queries]


def distance(one: str, two: str) -> int:
    """How many characters must be inserted, removed or replaced to make `two` of `one`."""
    row = list(range(len(two) + 1))
    for i, a in enumerate(one):
        before, row[0] = row[0], i + 1
        for j, b in enumerate(two):
            before, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, before + (a != b))
    return row[-1]
