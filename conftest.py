"""Imports the core before pytest names test modules after their folders, one of which is called like the package."""

import envharness_core

assert envharness_core.__file__ is not None
