from envharness_core.testing import layer_suite

TestFlakyTools = layer_suite("flaky_tools/flaky_tools", rate=0.5)
