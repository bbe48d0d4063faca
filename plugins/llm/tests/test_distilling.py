"""What models really write when they are asked for skills: what of it is read, and what never is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from attrs import evolve
from canned_policy import calls, says  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import Skill
from envharness_core.skills.skill import Provenance
from envharness_llm.distilling.choosing import by_turns, distinct
from envharness_llm.distilling.items import Found, Item, read_items
from envharness_llm.messages import Answer

CHECK = Item("Check the result", "When a call seems to have worked.", "Look again before the end.")
UNDO = Item("Undo at a dead end", "When no move leads on.", "Undo. Then take another way.")
BOTH = (CHECK, UNDO)


def data(item: Item) -> dict[str, str]:
    return {"title": item.title, "description": item.description, "content": item.content}


LIST = [data(item) for item in BOTH]
ITEMS = json.dumps({"items": LIST})
BARE = json.dumps(LIST)


def markdown(form: str) -> str:
    return "\n".join(form.format(number=n, **data(item)) for n, item in enumerate(BOTH, 1))


HEADINGS = "# Memory Item {number}\n## Title {title}\n## Description {description}\n## Content {content}\n"
BELOW = (
    "# Memory Item {number}\n## Title\n{title}\n\n## Description\n{description}\n\n## Content\n\n{content}\n"
)
BOLD = "**Title:** {title}\n**Description:** {description}\n**Content:** {content}\n"
OUTSIDE = "### {number}\n- **Title**: {title}\n- **Description**: {description}\n- **Content**: {content}"
WHOLLY = "**Title: {title}**\n**Description: {description}**\n**Content: {content}**\n---"
DASHED = "- **Title** - {title}\n- **Description** \u2014 {description}\n- **Content** - {content}"
NUMBERED = "{number}. Title: {title}\n   Description: {description}\n   Content: {content}"
HEADED = "## {number}. {title}\n\n**Description:** {description}\n\n**Content:** {content}\n"
ITEM_HEADED = "### Memory Item {number}: {title}\n**Description**\n{description}\n**Content**\n{content}\n"
NUMBER_HEADED = "{number}. {title}\n   - Description: {description}\n   - Content: {content}"
BOLD_HEADED = '{number}. **"{title}"**\n   When to use: {description}\n   What to do: {content}'
PLAIN = "Memory Item {number}:\nTitle: {title}\nDescription: {description}\nContent: {content}"

READABLE: dict[str, Answer] = {
    "a call": calls(("remember", ITEMS)),
    "a call under another name": calls(("memory", ITEMS)),
    "a call an item": calls(*(("remember", json.dumps(data(item))) for item in BOTH)),
    "a call whose list is text": calls(("remember", json.dumps({"items": BARE}))),
    "a call with a comma too many": calls(("remember", ITEMS.replace("}]}", "},]}"))),
    "a call with markdown in it": calls(("remember", markdown(HEADINGS))),
    "a call and another that is broken": calls(("remember", ITEMS), ("remember", '{"items": [')),
    "an empty call and text": calls(("remember", "{}"), text=ITEMS),
    "a call written as text": says(f'<tool_call>{{"name": "remember", "arguments": {ITEMS}}}</tool_call>'),
    "a fence": says(f"Here they are:\n```json\n{ITEMS}\n```\nI hope this helps."),
    "a list in a fence": says(f"```\n{BARE}\n```"),
    "a bare object": says(ITEMS),
    "a bare list": says(BARE),
    "a list between sentences": says(f"I found [two] {{things}}: {BARE} That is all."),
    "memory_items": says(json.dumps({"memory_items": LIST})),
    "skills": says(json.dumps({"skills": LIST})),
    "capital keys": says(json.dumps([{key.title(): text for key, text in item.items()} for item in LIST])),
    "a list within an answer": says(json.dumps({"answer": {"items": LIST}})),
    "JSON lines": says("\n".join(map(json.dumps, LIST))),
    "line ends in strings": says(ITEMS.replace("\\n", "\n")),
    "a line too many in a list": says(BARE.replace("}, {", "},, {")),
    "headings": says(markdown(HEADINGS)),
    "fenced headings": says(f"Sure!\n\n```markdown\n{markdown(HEADINGS)}```\n\nThat is all."),
    "a fence an item": says(markdown(f"```\n{HEADINGS}```")),
    "texts below headings": says(markdown(BELOW)),
    "bold names": says(markdown(BOLD)),
    "bold names in lists": says(markdown(OUTSIDE)),
    "bold lines": says(markdown(WHOLLY)),
    "bold names and dashes": says(markdown(DASHED)),
    "a numbered list": says(markdown(NUMBERED)),
    "titles as headings": says(markdown(HEADED)),
    "titles behind an item's number": says(markdown(ITEM_HEADED)),
    "titles as numbers": says(markdown(NUMBER_HEADED)),
    "titles as bold numbers": says(markdown(BOLD_HEADED)),
    "plain names": says(markdown(PLAIN)),
    "words before and after": says(f"Let me see.\n\n{markdown(BOLD)}\n\nTell me if you need more."),
    "reasoning before": says(f"<think>Title: no\nDescription: no\nContent: no</think>\n{markdown(HEADINGS)}"),
    "reasoning with items": says(f"<think>{json.dumps({'items': [data(UNDO)]})}</think>{ITEMS}"),
}


@pytest.mark.parametrize("name", READABLE)
def test_items_are_read_however_they_are_written(name: str) -> None:
    found = read_items(READABLE[name])
    assert (found.items, found.problem) == (BOTH, "")


EMPTY = {
    "a call": calls(("remember", '{"items": []}')),
    "an object": says('{"items": []}'),
    "a list": says(" [] "),
    "a fenced list": says("There is nothing in it.\n```json\n[]\n```"),
    "an empty list as text": calls(("remember", '{"items": "[]"}')),
    "words": says("Nothing worth remembering."),
    "more words": says("There's nothing here worth remembering."),
    "one word": says("None"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_worth_remembering_is_an_answer(name: str) -> None:
    assert read_items(EMPTY[name]) == Found()


THOUGHT = f"<think>{ITEMS}"
UNUSABLE = {
    "nothing": (says(""), "no items"),
    "a refusal": (says("I'm sorry, but I can't help with that."), "no items"),
    "reasoning alone": (says(f"{THOUGHT}</think>"), "no items"),
    "reasoning that isn't closed": (says(THOUGHT), "isn't closed"),
    "a call in reasoning that isn't closed": (calls(("remember", ITEMS), text=THOUGHT), "isn't closed"),
    "reasoning apart": (Answer("", reasoning=ITEMS), "no items"),
    "cut off": (evolve(calls(("remember", ITEMS)), finish="length"), "cut off"),
    "filtered": (Answer(ITEMS, finish="filtered"), "content filter"),
    "null": (calls(("remember", "null")), "no items"),
    "a list of texts": (calls(("remember", '{"items": ["be careful"]}')), "no item is complete"),
    "no content": (says('[{"title": "A", "description": "b"}]'), 'the item "A" has no content'),
    "no description and no content": (says("## Title A"), "has no description and no content"),
    "the form itself": (says('[{"title": "...", "description": "...", "content": "..."}]'), "has no title"),
    "numbers": (says('[{"title": 1, "description": "b", "content": "c"}]'), "has no title"),
    "a lone surrogate": (
        says('[{"title": "A", "description": "b", "content": "\\ud800"}]'),
        "has no content",
    ),
    "another lone surrogate": (
        says('[{"title": "A", "description": "b", "content": "c \\ud800"}]'),
        "can't be written down",
    ),
    "something else in JSON": (says('{"diagnosis": ["Title"]}'), "no items"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cant_be_used_says_why(name: str) -> None:
    answer, says_what = UNUSABLE[name]
    found = read_items(answer)
    assert found.items == ()
    assert says_what in found.problem
    assert found.cut is (name == "cut off")


@pytest.mark.parametrize("field", ["title", "description", "content"])
@pytest.mark.parametrize("form", [HEADINGS, BOLD, NUMBERED, PLAIN])
def test_an_item_that_isnt_complete_is_dropped_and_said(field: str, form: str) -> None:
    whole = form.format(number=1, **data(CHECK))
    torn = form.format(number=2, **data(UNDO) | {field: ""})
    found = read_items(says(f"{whole}\n{torn}"))
    assert (found.items, found.problem) == ((CHECK,), "")
    assert len(found.dropped) == 1
    assert field in found.dropped[0]


def test_of_a_broken_list_the_whole_items_count_and_the_others_are_said() -> None:
    found = read_items(says(BARE.replace('"description": "When no', '"description": When no')))
    assert found.items == (CHECK,)
    assert found.dropped == ('the item "Undo at a dead end" has no description and no content',)


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("One.\nTwo.", "One.\nTwo."),
        ("Do this:\n\n1. One.\n2. Two.", "Do this:\n\n1. One.\n2. Two."),
        ("- **One**\n- Two", "- **One**\n- Two"),
        ("Like this:\n```python\nx = 1\n# Title: x\n```\nDone.", None),
        ("One.\n\nI hope this helps.", "One."),
        ("One.\n---\nTwo.", "One."),
        ("Content that isn't a label, nor is **Title of it** here.", None),
        ("The title: what it says.\nTitle pages are seldom read.", None),
    ],
)
def test_a_content_ends_where_something_else_begins(content: str, kept: str | None) -> None:
    text = f"## Title A\n## Description b\n## Content {content}"
    (item,) = read_items(says(text)).items
    assert item.content == (content if kept is None else kept)


def test_steps_in_a_list_are_a_content() -> None:
    listed = json.dumps([data(CHECK) | {"content": ["- Look.", "- Look again."]}])
    assert read_items(says(listed)).items[0].content == "- Look.\n- Look again."


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=80)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5))
def test_whatever_stands_in_a_call_comes_back_as_it_was_written(told: list[tuple[str, str, str]]) -> None:
    listed: list[Any] = [dict(zip(("title", "description", "content"), item, strict=True)) for item in told]
    found = read_items(calls(("remember", json.dumps({"items": listed}))))
    assert len(found.items) + len(found.dropped) == len(told)
    written = [tuple(part.strip() for part in item) for item in told]
    assert all((item.title, item.description, item.content) in written for item in found.items)


MARKS = [
    "# ",
    "Title",
    "Description",
    "Content",
    ":",
    "**",
    "\n",
    "\n\n",
    "```",
    "1. ",
    "- ",
    "a b",
    "---",
    "    ",
]
PIECES = [*MARKS, "[", "{", "<think>", "</think>", '"title": ', "}", "]"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_whatever_is_said_is_read_or_refused_and_no_item_is_half(text: str) -> None:
    found = read_items(says(text))
    assert not (found.items and found.problem)
    for item in found.items:
        assert Skill(item.title, item.description, item.content, Provenance("t"))


def test_hostile_answers_are_read_in_no_time() -> None:
    began = time.process_time()
    for piece in (
        "[{",
        "[",
        '{"title": "',
        '{"title":',
        "#",
        "1. ",
        "** Title ",
        "\n",
        "\n- ",
        "```\n",
        "## Title\n",
    ):
        assert not read_items(says(piece * 30_000)).items
    assert time.process_time() - began < 5


def skill(title: str, content: str = "Do it.", description: str = "When it is time.") -> Skill:
    return Skill(title, description, content, Provenance("t"))


def test_skills_come_by_turns() -> None:
    a, b, c, d = map(skill, "abcd")
    assert by_turns([[a, b], [], [c, d]]) == [a, c, b, d]


def test_of_skills_that_say_the_same_the_first_stays() -> None:
    first = skill("Check before you submit", "Read the result once more before you submit it.")
    kept, gone = distinct(
        [
            first,
            skill("Checking before submitting", "Something else."),
            skill("Look again", "Read the result once more before you submit it."),
            skill("Do not check before you submit", "Read the result once more before you submit it."),
            skill("Undo at a dead end", "Undo."),
        ]
    )
    assert [item.title for item in kept] == [
        first.title,
        "Do not check before you submit",
        "Undo at a dead end",
    ]
    assert len(gone) == 2
    assert "says the same as 'Check before you submit'" in gone[0]
