"""Words in common: how alike two texts are, with no model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log, sqrt

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APOSTROPHE = re.compile("(?:'|\u2019)(?:s\\b)?")
_STOP_WORDS = (
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can could did do does doing down during each few for from further had has have having he her here hers him "
    "his how i if in into is it its just me more most my no nor not now of off on once only or other our out over own "
    "same she should so some such than that the their them then there these they this those through to too under "
    "until up us very was we were what when where which while who whom why will with would you your"
)
_STOP = frozenset(_STOP_WORDS.split())
_NEGATIVES = (
    "not no never none nothing without avoid cannot cant dont doesnt didnt isnt arent wont shouldnt mustnt"
)
_NEGATIONS = frozenset(_NEGATIVES.split())
_VOWELS = frozenset("aeiouy")


def words(text: str) -> list[str]:
    """Return a text's words in order, folded; identifiers such as ``get_user`` and ``getUser`` are split."""
    return _WORD.findall(_APOSTROPHE.sub("", _HUMP.sub(" ", text)).casefold())


def terms(text: str) -> list[str]:
    """Return the stems of a text's telling words, in order."""
    return [stem(word) for word in words(text) if word not in _STOP]


def stem(word: str) -> str:
    """Return a word without its commonest English endings, so that ``tries`` and ``trying`` meet ``try``."""
    word = _singular(word)
    if word.endswith("ied") and len(word) > 4:
        return f"{word[:-3]}y"
    for ending in ("ing", "ed", "ly"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and not _VOWELS.isdisjoint(root):
            word = _undoubled(root)
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how much of two wordings is in both, in [0, 1]; 1 is the same words beside the same words."""
    if not one or not other:
        return float(one == other)
    return len(one & other) / sqrt(len(one) * len(other))


def wording(text: str) -> frozenset[str]:
    """Return a text's words and pairs of neighbours, for ``alike``; one number is as good as another."""
    spoken = ["#" if word.isdecimal() else word for word in words(text)]
    return frozenset(spoken) | {f"{one} {other}" for one, other in pairwise(spoken)}


def negations(text: str) -> Mapping[str, int]:
    """Count the words that turn advice into its opposite."""
    return Counter(word for word in words(text) if word in _NEGATIONS)


class Index:
    """Texts that can be compared by their words: cosines of tf-idf weights, in [0, 1].

    Term frequencies count by their logarithm, and a term the more the fewer of the texts have it. A query's terms that
    no text has count too: a query that is mostly about something else is like nothing here.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [Counter(terms(text)) for text in texts]
        self._size = len(texts)
        self._having = Counter(term for counts in counted for term in counts)
        self._vectors = [self._vector(counts) for counts in counted]
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for number, vector in enumerate(self._vectors):
            for term, weight in vector.items():
                self._postings.setdefault(term, []).append((number, weight))

    def scores(self, query: str) -> list[float]:
        """Return how like the query each text is."""
        scores = [0.0] * self._size
        for term, weight in self._vector(Counter(terms(query))).items():
            for number, other in self._postings.get(term, ()):
                scores[number] += weight * other
        return [min(1.0, score) for score in scores]

    def similarity(self, one: int, other: int) -> float:
        """Return how like each other two of the texts are."""
        a, b = sorted((self._vectors[one], self._vectors[other]), key=len)
        return min(1.0, sum(weight * b.get(term, 0.0) for term, weight in a.items()))

    def _vector(self, counts: Mapping[str, int]) -> dict[str, float]:
        weights = {
            term: (1 + log(count)) * (1 + log((1 + self._size) / (1 + self._having[term])))
            for term, count in counts.items()
        }
        length = sqrt(sum(weight * weight for weight in weights.values()))
        return {term: weight / length for term, weight in weights.items()}


def _singular(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    return word[:-2] if word.endswith(("sses", "xes", "zes", "ches", "shes")) else word[:-1]


def _undoubled(root: str) -> str:
    doubled = root[-1] == root[-2] and root[-1] not in "lsz" and root[-1] not in _VOWELS
    return root[:-1] if doubled else root
