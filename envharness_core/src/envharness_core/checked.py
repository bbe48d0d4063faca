"""Checked data: what a bridge, a layer or a hook returned, held to its types and copied."""

from __future__ import annotations

from math import isfinite

from envharness_core.data import Observation, ResetResponse, StepResponse, Verdict
from envharness_core.errors import DataError
from envharness_core.jsondata import copy_object


def malformed(observation: Observation, problem: str) -> StepResponse:
    """Answer a malformed call: the world as it was, with the problem in front of it."""
    shown = observation.preceded_by(f"Malformed call: {problem}")
    return StepResponse(shown, info={"malformed": problem})


def checked_reset(response: object) -> ResetResponse:
    """Return a checked copy of a reset's response.

    Raises:
        DataError: it is no ``ResetResponse``, or something in it has the wrong type.
    """
    if not isinstance(response, ResetResponse):
        raise DataError("", f"expected a ResetResponse, got {type(response).__name__}")
    return ResetResponse(
        checked_observation(response.observation, "observation"),
        checked_text(response.instruction, "instruction"),
        copy_object(response.info, "info"),
    )


def checked_response(response: object) -> StepResponse:
    """Return a checked copy of a step's response.

    Raises:
        DataError: it is no ``StepResponse``, or something in it has the wrong type.
    """
    if not isinstance(response, StepResponse):
        raise DataError("", f"expected a StepResponse, got {type(response).__name__}")
    for name, flag in (("terminated", response.terminated), ("truncated", response.truncated)):
        if type(flag) is not bool:
            raise DataError(name, f"expected a bool, got {flag!r}")
    return StepResponse(
        checked_observation(response.observation, "observation"),
        checked_number(response.reward, "reward"),
        response.terminated,
        response.truncated,
        copy_object(response.info, "info"),
    )


def checked_observation(observation: object, path: str = "") -> Observation:
    """Return a checked copy of an observation.

    Raises:
        DataError: it is no ``Observation``, or something in it has the wrong type.
    """
    if not isinstance(observation, Observation):
        raise DataError(path, f"expected an Observation, got {type(observation).__name__}")
    return Observation(
        checked_text(observation.text, "observation.text"),
        copy_object(observation.data, "observation.data"),
    )


def checked_verdict(verdict: object) -> Verdict:
    """Return a checked copy of a verdict.

    Raises:
        DataError: it is no ``Verdict``, or something in it has the wrong type.
    """
    if not isinstance(verdict, Verdict):
        raise DataError("verdict", f"expected a Verdict, got {type(verdict).__name__}")
    if type(verdict.success) is not bool:
        raise DataError("verdict.success", f"expected a bool, got {verdict.success!r}")
    score = checked_number(verdict.score, "verdict.score")
    return Verdict(verdict.success, score, copy_object(verdict.metrics, "verdict.metrics"))


def checked_text(value: object, path: str) -> str:
    """Return text that can be encoded.

    Raises:
        DataError: it isn't text, or has a lone surrogate.
    """
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        raise DataError(path, f"expected text, got {type(value).__name__}")
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError as error:
        raise DataError(path, "text with a lone surrogate can't be encoded") from error
    return plain


def checked_number(value: object, path: str) -> float:
    """Return a finite number.

    Raises:
        DataError: it isn't one.
    """
    if type(value) is float and isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise DataError(path, f"expected a finite number, got {value!r}")
    return float(value)
