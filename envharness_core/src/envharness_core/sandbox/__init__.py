"""The rules sandbox: generated hooks behind a process wall, where every fault is a value."""
