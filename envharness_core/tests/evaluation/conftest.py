"""A campaign that evaluations learn from."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from paid_evaluations import config  # type: ignore[import-not-found]

from envharness_core import campaign


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign") / "run"
    assert cast("int", campaign(config(), folder)["accepted"]) >= 2
    return folder
