"""The cache of baselines: episodes that several runs have in common, by their content hash."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from envharness_core.episode import EpisodeSpec, Record
from envharness_core.jsondata import digest
from envharness_core.plugins import Plugins
from envharness_core.store import Store, locked


class BaselineCache:
    """Graded episodes of ``baseline`` and ``demonstration`` streams, shared between runs with one writer at a time.

    An episode's key covers bridge, its version, task, policy, limits and seeds; the versions of the core and of all
    plugins choose the folder below the cache's. What failed is never kept.

    Args:
        folder: where the cache is; made if need be.
        plugins: those of the run.
    """

    def __init__(self, folder: Path, plugins: Plugins) -> None:
        versions = {"envharness-core": version("envharness-core"), **plugins.origins()}
        place = folder / digest(versions)
        Store.prepare(place)
        with locked(place, wait=True):
            self._store = (
                Store.open(place) if Store.exists(place) else Store.create(place, {"versions": versions})
            )

    def get(self, spec: EpisodeSpec) -> Record | None:
        """Return an episode that another run has played, or None."""
        if not _is_shared(spec):
            return None
        return self._store.record(spec.key)

    def put(self, spec: EpisodeSpec, record: Record) -> None:
        """Keep an episode for other runs, where it is one to share and was graded."""
        if _is_shared(spec) and record.episode.graded:
            self._store.put(spec, record)

    def __enter__(self) -> BaselineCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; idempotent."""
        self._store.close()


def _is_shared(spec: EpisodeSpec) -> bool:
    return spec.stream.partition(" ")[0] in ("baseline", "demonstration") and not spec.design.layers
