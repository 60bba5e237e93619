"""What passes know beside the program: the machine and the options of the compilation."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.hw.tensix import WORMHOLE, Tensix
from tilewright.targets.tenstorrent.options import TenstorrentOptions, grid_of


@dataclass(frozen=True)
class PassContext:
    """The third argument of a pass. A pass that is called with None gets the defaults."""

    core: Tensix = WORMHOLE
    options: TenstorrentOptions = field(default_factory=TenstorrentOptions)

    @property
    def core_grid(self) -> tuple[int, int]:
        """Columns and rows of cores."""
        return grid_of(self.options.core_grid)

    @property
    def dst_capacity(self) -> int:
        """Tiles that DST holds."""
        return self.core.dst_capacity(self.options.dst)


DEFAULT = PassContext()
