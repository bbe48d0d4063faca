"""Recordable replies: what a policy said, whatever it put in there, as a trajectory can hold it."""

from __future__ import annotations

from envharness_core.data import Action
from envharness_core.errors import PLUGIN_FAULTS, EnvHarnessError
from envharness_core.jsondata import copy_object
from envharness_core.policy import Reply


def recordable(reply: Reply) -> Reply:
    """Return a copy of a reply that can be written down, whatever a policy put into its arguments."""
    return Reply(tuple([_recorded(action) for action in reply.actions]), reply.text, reply.usage)


def _recorded(action: Action) -> Action:
    try:
        return _plain(action)
    except (EnvHarnessError, TypeError, ValueError, RecursionError):
        name = action.name
        plain = type(name) is str and name.isascii()
        return Action(name if plain else _printed(name), {"malformed": _printed(action.kwargs)})


def _printed(value: object) -> str:
    try:
        return ascii(value)[:2000]
    except PLUGIN_FAULTS:  # nested too deeply, a number of too many digits, a repr that raises
        return f"{type(value).__name__}, which can't be printed"


def _plain(action: Action) -> Action:
    name = action.name
    if type(name) is not str or not name.isascii():
        (name,) = copy_object({name: None})  # a name is text, as a key is
    return Action(name, copy_object(action.kwargs))
