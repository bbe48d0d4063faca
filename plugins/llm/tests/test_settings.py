"""Settings: what is wrong is named, what may be a key is never repeated, and one provider can differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.session import Session
from envharness_llm.client import Client
from envharness_llm.settings import CassetteSettings, Settings

SECRETS = (
    "sk-abc",
    "sk-proj-0123456789abcdef0123",
    "sk-ant-api03-0123456789abcdef",
    "gsk_0123456789abcdef01234",
    "hf_0123456789abcdefABCDEF",
    "AIza0123456789abcdefghijklmnopqrstuvwxyz0",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "0" * 65,
)


def read(**settings: object) -> Settings:
    return Settings.of(Session(None, dict(settings)))  # type: ignore[arg-type]


def refused(**settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        read(**settings)
    return str(caught.value)


def test_nothing_has_to_be_set() -> None:
    assert read() == Settings()
    assert (Settings().in_flight, Settings().timeout, Settings().retries, Settings().patience) == (
        16,
        120.0,
        4,
        3600.0,
    )
    assert Settings().cassette == CassetteSettings("auto", None)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_is_refused_wherever_it_stands_and_not_repeated(secret: str) -> None:
    for settings in ({"keys": ["FINE", secret]}, {"providers": {"openai": {"keys": [secret]}}}):
        said = refused(**settings)
        assert "environment" in said
        assert "keys" in said
        assert secret not in said


@pytest.mark.parametrize("secret", [secret for secret in SECRETS if len(secret) > 20 and secret != "0" * 65])
def test_a_key_of_the_wrong_type_or_under_the_wrong_name_is_not_repeated(secret: str) -> None:
    assert secret not in refused(keys=secret)
    assert secret not in refused(api_key=secret)
    assert secret not in refused(api_base=secret)


def test_an_error_has_no_cause_that_repeats_a_key() -> None:
    with pytest.raises(ConfigError) as caught:
        read(keys=SECRETS[1])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"in_flight": 0}, "in_flight"),
        ({"in_flight": 1.5}, "in_flight"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"patience": -1}, "patience"),
        ({"stream": "yes"}, "stream"),
        ({"keys": ["not a name"]}, "keys"),
        ({"api_base": "localhost:8000"}, "api_base"),
        ({"cassette": {"mode": "record"}}, "cassette.mode"),
        ({"cassette": {"file": ""}}, "'file'"),
        ({"prices": 3}, "prices"),
        ({"prices": {"m": {"input": -1}}}, "prices"),
        ({"providers": []}, "providers"),
        ({"providers": {"openai/gpt": {}}}, "providers"),
        ({"providers": {"openai": {"in_flight": 0}}}, "in_flight"),
        ({"inflight": 3}, "did you mean 'in_flight'"),
    ],
)
def test_a_wrong_value_is_named(settings: JsonObject, field: str) -> None:
    said = refused(**settings)
    assert field in said
    assert said.startswith("settings.llm")


@given(st.dictionaries(st.sampled_from(["openai", "anthropic", "mine"]), st.integers(1, 50)))
def test_a_provider_differs_only_in_what_it_sets(in_flight: dict[str, int]) -> None:
    settings = read(
        api_base="https://all.example",
        keys=["ALL"],
        in_flight=7,
        providers={name: {"in_flight": count, "keys": [name.upper()]} for name, count in in_flight.items()},
    )
    for provider in ("openai", "anthropic", "mine", "other"):
        endpoint = settings.endpoint(f"{provider}/some/model")
        assert endpoint.provider == provider
        assert endpoint.api_base == "https://all.example"
        assert endpoint.in_flight == in_flight.get(provider, 7)
        assert endpoint.keys == ((provider.upper(),) if provider in in_flight else ("ALL",))
    assert settings.endpoint("bare-name").provider == ""


def test_a_provider_can_do_without_the_keys_of_all() -> None:
    settings = read(keys=["ALL"], providers={"local": {"keys": [], "api_base": "http://localhost:1/v1"}})
    assert settings.endpoint("local/m").keys == ()


@pytest.mark.parametrize(
    "settings",
    [
        {"keys": ["TEST_MODEL_KEY", "NOT_SET_AT_ALL"]},
        {"providers": {"openai": {"keys": ["NOT_SET_AT_ALL"]}}},
        {"keys": ["TEST_BLANK_KEY"]},
    ],
)
def test_a_variable_that_is_not_set_is_named_when_a_component_is_attached(
    settings: JsonObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_BLANK_KEY", " \n")
    with pytest.raises(ConfigError, match=r"NOT_SET_AT_ALL|TEST_BLANK_KEY"):
        Client.of(Session(None, settings))


def test_a_replay_needs_no_key_but_its_record(tmp_path: Path) -> None:
    settings: JsonObject = {"keys": ["NOT_SET_AT_ALL"], "cassette": {"mode": "replay"}}
    with pytest.raises(ConfigError, match=r"cassette\.file.*calls\.sqlite3"):
        Client.of(Session(tmp_path, settings))
    with pytest.raises(ConfigError, match=r"cassette\.file.*no run folder"):
        Client.of(Session(None, settings))
    assert not list(tmp_path.iterdir())
