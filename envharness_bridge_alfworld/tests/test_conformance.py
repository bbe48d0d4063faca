"""The bridge keeps the contract."""

from envharness_core.testing import bridge_suite

TestALFWorld = bridge_suite("alfworld", None, (), (), data="generated", generated=2, cache="off")
