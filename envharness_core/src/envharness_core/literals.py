"""Literals: JSON and Python values read from text that nobody vouches for; nothing is evaluated.

``ast.literal_eval`` won't do: it warns of ``"\\d"``, which models write, splits the surrogate pairs of JSON, and takes
what JSON has no word for (bytes, sets, complex numbers).
"""

from __future__ import annotations

import re

from envharness_core.jsondata import Json, JsonObject

_DEPTH = 64  # levels of lists and objects
_DIGITS = 40  # of a whole number; what is longer is beyond 64 bits

_SPACE = re.compile(r"\s*")
_TEXT = re.compile(
    r'([rR]?)("""(?P<a>[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+)"""'
    r"|'''(?P<b>[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+)'''"
    r'|"(?P<c>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
    r"|'(?P<d>[^'\\]*+(?:\\.[^'\\]*+)*+)')",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*+)(\.\d*+)?|(\.\d++))([eE][-+]?\d++)?(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NAMED = re.compile(r"([A-Za-z_][\w-]*)\s*=(?!=)")
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))", re.DOTALL
)

_WORDS: dict[str, Json] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\n": ""}


class LiteralError(ValueError):
    """Text isn't the literal that it should be; says what is wrong and where."""


def read_value(text: str, at: int = 0) -> tuple[Json, int]:
    """Return the value that starts at a place, and where it ends; nothing is said of what follows.

    Raises:
        LiteralError: there is none.
    """
    reader = _Reader(text, at)
    return reader.value(0), reader.at


def read_arguments(text: str, at: int) -> tuple[list[Json], JsonObject, int]:
    """Return a call's arguments, by position and by name, from the place after its ``(``, and where it ends.

    Raises:
        LiteralError: one isn't a literal or comes twice, or the call isn't closed.
    """
    reader = _Reader(text, at)
    positional, named = reader.arguments()
    return positional, named, reader.at


class _Reader:
    """A text, and how far it has been read."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at

    def value(self, depth: int) -> Json:
        if depth > _DEPTH:
            raise LiteralError(f"nested deeper than {_DEPTH} levels")
        match self._peek():
            case "[":
                return self._listed("]", depth)[0]
            case "(":
                items, commas = self._listed(")", depth)
                return items[0] if len(items) == 1 and not commas else items
            case "{":
                return self._object(depth)
        return self._scalar()

    def arguments(self) -> tuple[list[Json], JsonObject]:
        positional: list[Json] = []
        named: JsonObject = {}
        while not self._took(")"):
            name = _NAMED.match(self._text, self.at)
            if name is not None:
                self.at = name.end()
                _put(named, name[1], self.value(0))
            elif named:
                raise self._error("an argument without a name after one with a name")
            else:
                positional.append(self.value(0))
            if not self._took(","):
                self._need(")")
                break
        return positional, named

    def _listed(self, close: str, depth: int) -> tuple[list[Json], int]:
        """Read a list and count its commas, by which a tuple of one is told from a value in brackets."""
        self.at += 1
        items: list[Json] = []
        commas = 0
        while not self._took(close):
            items.append(self.value(depth + 1))
            if not self._took(","):
                self._need(close)
                break
            commas += 1
        return items, commas

    def _object(self, depth: int) -> JsonObject:
        self.at += 1
        items: JsonObject = {}
        while not self._took("}"):
            key = self._scalar()
            if not isinstance(key, str):
                raise self._error("a key must be text in quotes")
            self._need(":")
            _put(items, key, self.value(depth + 1))
            if not self._took(","):
                self._need("}")
                break
        return items

    def _scalar(self) -> Json:
        self._peek()
        if found := _TEXT.match(self._text, self.at):
            self.at = found.end()
            body = next(part for part in found.group("a", "b", "c", "d") if part is not None)
            return body if found[1] else _unescaped(body)
        if found := _NUMBER.match(self._text, self.at):
            self.at = found.end()
            return _number(found)
        word = _WORD.match(self._text, self.at)
        if word is not None and word[0] in _WORDS:
            self.at = word.end()
            return _WORDS[word[0]]
        raise self._error("expected a value; text stands in quotes")

    def _peek(self) -> str:
        """Pass over white space and return the next character, or nothing at the end."""
        space = _SPACE.match(self._text, self.at)
        self.at = space.end() if space is not None else self.at
        return self._text[self.at : self.at + 1]

    def _took(self, char: str) -> bool:
        found = self._peek() == char
        self.at += found
        return found

    def _need(self, char: str) -> None:
        if not self._took(char):
            raise self._error(f"expected {char!r}")

    def _error(self, problem: str) -> LiteralError:
        rest = self._text[self.at : self.at + 20]
        return LiteralError(f"{problem}, at {rest!r}" if rest else f"{problem}, but the text ends")


def _put(items: JsonObject, name: str, value: Json) -> None:
    if name in items:
        raise LiteralError(f"{name[:80]!r} is given twice")
    items[name] = value


def _number(found: re.Match[str]) -> Json:
    if found[1] is None and found[2] is None and found[3] is None:
        if len(found[0]) > _DIGITS:
            raise LiteralError("an integer beyond 64 bits can't be encoded; write it as text")
        return int(found[0])
    return float(found[0])


def _unescaped(body: str) -> str:
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_character, body)
    try:  # JSON writes what is beyond 16 bits as two halves
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise LiteralError("text with a lone surrogate can't be encoded") from error


def _character(found: re.Match[str]) -> str:
    code, octal, char = found[1] or found[2] or found[3], found[4], found[5]
    if octal is not None:
        return chr(int(octal, 8))
    if code is not None:
        if int(code, 16) > 0x10FFFF:
            raise LiteralError(f"there is no character {found[0]}")
        return chr(int(code, 16))
    if char in "xuU":
        raise LiteralError(f"\\{char} lacks its hexadecimal digits; a backslash itself is written \\\\")
    if char in "\\'\"/":
        return char
    return _ESCAPED.get(char, found[0])
