"""Imports the packages before pytest names test modules after their folders, which are called like the packages."""

from contextlib import suppress

import envharness_core

with suppress(ModuleNotFoundError):  # a core alone is tested too
    import envharness_bridge_alfworld

    assert envharness_bridge_alfworld.__file__ is not None

assert envharness_core.__file__ is not None
