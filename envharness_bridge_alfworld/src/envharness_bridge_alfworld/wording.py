"""What agents, hooks' authors and designers are told of ALFWorld."""

from __future__ import annotations

HOW_TO_ACT = (
    "You are in a household. Act by do(command), one command at a time, each word for word as the game takes it, "
    'such as "go to shelf 1", "open drawer 2", "take mug 1 from desk 1", "move mug 1 to shelf 1", '
    '"use desklamp 1", "clean apple 1 with sinkbasin 1", "heat apple 1 with microwave 1", '
    '"cool apple 1 with fridge 1", "examine desk 1", "inventory" or "look". What it doesn\'t take is answered with '
    '"Nothing happens."'
)

STATE = (
    "goal: str, the task's sentence\n"
    "text: str, the engine's last words, without the list of commands\n"
    "admissible: list[str], the commands that the game takes now, sorted\n"
    "inventory: list[str], what the agent holds, such as ['mug 1']; one thing at most\n"
    "command: str | null, the last command that reached the game, null at the start\n"
    'understood: bool, whether the game took that command; false means it said "Nothing happens."\n'
    "steps: int, commands since the start or the end of a replay\n"
    "won: bool, whether the task is done\n"
    "done: bool, whether the episode has ended"
)

DESIGNER_NOTES = (
    "ALFWorld is a household in text. The agent calls do(command) with commands such as: go to fridge 1, "
    "open fridge 1, take mug 1 from fridge 1, move mug 1 to desk 1, use desklamp 1, heat mug 1 with microwave 1 "
    "(cool with a fridge, clean with a sinkbasin), examine mug 1, inventory, look, help. Commands are exact and "
    "case-sensitive.\n"
    'This world refuses in one way alone: "Nothing happens." It gives no reasons, no hints and no errors. A rule that '
    "makes an action fail should say just that and leave the world as it is, so that trying again, or another way, "
    "still works.\n"
    "The list of receptacles stands in the first text alone. What is in a closed receptacle shows only once it is "
    "open. One thing can be carried at a time. The task is won by the state of the world (a thing of the right kind, "
    "treated if asked, in or on a place of the right kind; or held while the lamp is used), and the episode ends at "
    "once then.\n"
    "Which objects there are and where they lie differs between tasks of one kind: write rules over kinds of commands "
    "and of texts, never over one game's numbers. A setup can carry the target to another place, or put it into a "
    "closed drawer; it can't make things that aren't there. Don't promise an end other than the benchmark's own: only "
    "the engine says who has won."
)
