"""Components that ask a model: where they have it from, and what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from envharness_core.session import Attachable, Session

if TYPE_CHECKING:
    from envharness_llm.client import Client

ModelT = TypeVar("ModelT")


class AsksModel(Attachable, Generic[ModelT]):
    """Asks the model that it was made with, or else the client of the session that it is attached to."""

    _model: ModelT | None = None
    _client: Client | None = None
    _session = Session()

    def attach(self, session: Session) -> None:
        self._session = session
        if self._model is None:
            from envharness_llm.client import (
                Client,  # a config can be checked, and a prompt shown, without one
            )

            self._client = Client.of(session)
            self._model = cast("Any", self._client)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
