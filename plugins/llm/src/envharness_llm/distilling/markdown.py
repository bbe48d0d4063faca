"""Items in markdown: headings, bold words or plain words that name the fields, in lists or not."""

from __future__ import annotations

import re

from attrs import define, field

from envharness_llm.distilling.drafts import ALIASES, FIELDS, Draft

_LEAD = r"[ \t]*+(?P<lead>(?:(?:#++|>|[-+*\u2022](?=[ \t])|\d{1,3}[.)])[ \t]*+)*+)"
_NAMES = "|".join([*sorted(ALIASES, key=len, reverse=True), *FIELDS])
_LABEL = re.compile(
    rf"{_LEAD}(?P<bold>\*\*|__)?[ \t]*(?P<name>{_NAMES})\b[ \t]*(?P<colon>[:\uff1a])?[ \t]*"
    r"(?P<close>\*\*|__)?[ \t]*(?P<late>[:\uff1a])?[ \t]*(?P<rest>.*)",
    re.IGNORECASE,
)
_LEADING = re.compile(_LEAD)
_RULE = re.compile(r"[ \t]*(?:[-*_=][ \t]*){3,}")
_BOLD = re.compile(r"[ \t]*(?:\*\*|__)[^*_]+(?:\*\*|__):?[ \t]*")
_NUMBERED = re.compile(
    r"(?:memory[ \t]+)?(?:item|memory|skill|lesson)[ \t]*#?\d+[ \t]*[:.\u2013\u2014-]?[ \t]*", re.IGNORECASE
)
_DASH = re.compile(r"\A[-\u2013\u2014][ \t]+")
_FENCE = "```"
_QUOTES = "\"'`\u201c\u201d"


def in_markdown(text: str) -> list[Draft]:
    """Return what is written of items, complete or not, in order."""
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line.rstrip())
    reader.end_item()
    return [*reader.drafts]


@define
class _Reader:
    """Reads line by line; ``name`` is the field that is being read, if any."""

    drafts: list[dict[str, str]] = field(factory=list)
    current: dict[str, str] = field(factory=dict)
    name: str = ""
    lines: list[str] = field(factory=list)
    before: str = ""
    wrapped: bool = False
    code: bool = False

    def take(self, line: str) -> None:
        plain = line.strip()
        if plain.startswith(_FENCE) or self.code:
            self._fence(line, plain)
        elif label := _label(line):
            self._begin(*label)
        elif _RULE.fullmatch(line) or _heads(line):
            self.end_field()
        elif self.name:
            self._go_on(line)
        self.before = plain or self.before

    def end_field(self) -> None:
        if self.name:
            self.current[self.name] = _bare("\n".join(self.lines), self.name)
        self.name, self.lines = "", []

    def end_item(self) -> None:
        self.end_field()
        if self.current:
            self.drafts.append(self.current)
        self.current = {}

    def _begin(self, name: str, rest: str) -> None:
        """Begin a field, and with a title, or with a field that is there already, an item."""
        begun = {*self.current, self.name} - {""}
        title = _title(self.before) if name != "title" and (not begun or name in begun) else ""
        if title and self.lines and self.lines[-1].strip() == self.before:
            self.lines.pop()  # a list's next number, which read like a further line
        if name == "title" or name in begun:
            self.end_item()
        self.end_field()
        if title:
            self.current["title"] = title
        self.name, self.lines = name, [rest] if rest else []

    def _go_on(self, line: str) -> None:
        """Take a further line of a field; behind a blank one only a list or what is indented belongs to it."""
        if not self.lines:
            self.lines += [line.strip()] if line.strip() else []
        elif self.name == "title":
            self.end_field()
        elif not line.strip():
            self.lines.append("")
        elif self.lines[-1] or line[0] in " \t" or (_lead(line) and self.name == "content"):
            self.lines.append(line)
        else:
            self.end_field()

    def _fence(self, line: str, plain: str) -> None:
        """Keep code within a field; fences around whole items are no part of them."""
        marks = plain.startswith(_FENCE)
        if self.code or (marks and self.name and (not self.wrapped or plain != _FENCE)):
            self.lines.append(line)
            self.code = self.code != marks
        else:
            self.end_field()
            self.wrapped = not self.wrapped


def _label(line: str) -> tuple[str, str] | None:
    """Return the field that a line begins, and what it says of it already."""
    label = _LABEL.fullmatch(line)
    if label is None:
        return None
    colon, bold = label["colon"] or label["late"], label["bold"] and label["close"]
    if not (colon or bold or "#" in label["lead"]):
        return None
    rest = label["rest"]
    if bold and not colon:
        rest = _DASH.sub("", rest)
    elif label["bold"] and not bold:  # the whole line is bold
        rest = rest.removesuffix(label["bold"])
    name = " ".join(label["name"].lower().split())
    return ALIASES.get(name, name), rest.strip()


def _heads(line: str) -> bool:
    """Say whether a line stands over something, so that it is no part of what came before."""
    lead = _lead(line)
    rest = line.strip()[len(lead) :]
    if not rest or "#" in lead or _NUMBERED.fullmatch(rest):
        return bool(lead or rest)
    return _BOLD.fullmatch(rest) is not None and not set(lead) & set("-+*\u2022")


def _title(line: str) -> str:
    """Return what a line calls the item below it; nothing where it is no head."""
    lead = _lead(line)
    rest = line.strip()[len(lead) :]
    if not lead and _BOLD.fullmatch(rest) is None and _NUMBERED.match(rest) is None:
        return ""
    rest = rest.strip("*_ \t").removesuffix(":").strip("*_ \t")
    return _bare(_NUMBERED.sub("", rest, count=1) if _NUMBERED.match(rest) else rest, "title")


def _lead(line: str) -> str:
    """Return the marks of headings, lists and quotes before a line's words."""
    mark = _LEADING.match(line)
    return mark["lead"] if mark else ""


def _bare(text: str, name: str) -> str:
    text = text.strip()
    if name != "title":
        return text
    text = text.strip("*_ \t")
    quoted = len(text) > 2 and text[0] in _QUOTES and text[-1] in _QUOTES
    return text[1:-1].strip() if quoted else text
