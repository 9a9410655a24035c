"""`napping export`."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.cli.console import warn_incomplete
from nappingrl.report.export import export
from nappingrl.report.runs import read_run


@dataclass(frozen=True)
class Export:
    """Convert a run to SB3's Monitor files, WSU's columns or TensorBoard.

    Example: napping export runs/cartpole-ppo-napping-1 --format wsu --out exported
    """

    run: Positional[Path]
    """Folder of the run."""
    out: Path
    """Folder for the files."""
    format: str = "monitor"
    """monitor, wsu or tensorboard."""
    partial: bool = False
    """Accept an unfinished run and use its finished parts."""

    def __call__(self) -> None:
        """Write the files and name the first one."""
        run = read_run(self.run, self.partial)
        files = export(run, self.format, self.out)
        warn_incomplete([run])
        print(f"{len(files)} file{'s' if len(files) != 1 else ''} in {self.out}: {files[0].name}, ...")
