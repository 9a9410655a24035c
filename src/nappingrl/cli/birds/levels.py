"""`napping birds levels`."""

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from tyro.conf import Positional

from nappingrl.cli.argv import line
from nappingrl.cli.console import progress
from nappingrl.domains.angrybirds.levels import files
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
from nappingrl.domains.angrybirds.novelties import NOVELTIES, make_change
from nappingrl.domains.angrybirds.physics.scene import Level, Scene
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.pictures.sheet import contact_sheet
from nappingrl.errors import BadSpecError, check_name, check_whole
from nappingrl.files import remove_temporaries
from nappingrl.files.lock import locked
from nappingrl.trials.limits import MAX_LEVELS, MAX_SEED
from nappingrl.trials.store import make_folder, write_output

MAX_PICTURES = 200
"""Per sheet."""


@dataclass(frozen=True)
class Levels:
    """Write Angry Birds levels as XML files or as one picture.

    Templates, each named after its novelty: green-egg, bone, taller-slingshot, pig-color, circumcircle,
    floating-wood, bird-likes-pig. Other novelties: bouncier-bird, tougher-wood, lighter-blocks, no-gravity-for-birds,
    storm, grayscale, rotated-screen.

    Example: napping birds levels levels.png --template bone --novelty --count 4
    """

    out: Positional[Path]
    """A .png file for a picture, or a folder for XML files."""
    template: str = "all"
    """Name of a template, or all."""
    count: int = 1
    """Levels per template."""
    number: int = 0
    """Number of the first level."""
    novelty: bool = False
    """Add each level with its novelty; XML files only show novelties that change the objects of a level."""
    preset: str = "phyq"
    """Physics constants: phyq, phyq-game or sailon."""

    def __call__(self) -> None:
        """Make the levels and print where they are."""
        check_name("template", self.template, ("all", *TEMPLATES))
        templates = list(TEMPLATES) if self.template == "all" else [self.template]
        check_whole("--count", self.count, 1, MAX_LEVELS // len(templates))
        check_whole("--number", self.number, 0, MAX_SEED)
        levels = [(name, make_level(name, self.number + i)) for name in templates for i in range(self.count)]
        if self.out.suffix.lower() == ".png":
            self._draw(levels)
        elif self.out.suffix:
            raise BadSpecError(f"'{self.out}' ends with '{self.out.suffix}'; give a .png, or a folder without a suffix")
        else:
            self._write(levels)

    def _draw(self, levels: list[tuple[str, Level]]) -> None:
        n_pictures = len(levels) * (1 + self.novelty)
        if n_pictures > MAX_PICTURES:
            raise BadSpecError(f"{n_pictures} pictures on one sheet; at most {MAX_PICTURES}: give a smaller --count")
        shown: list[tuple[str, Scene]] = []
        with progress("levels") as update:
            for i, (template, level) in enumerate(levels):
                update(i, len(levels))
                shown.append((level.name, self._scene(level)))
                if self.novelty:
                    shown.append((f"after {template}: {_describe(template)}", self._scene(level, template)))
        columns = 2 if self.novelty or self.count == 1 else min(self.count, 4)
        picture = io.BytesIO()
        Image.fromarray(contact_sheet(shown, columns)).save(picture, "png", optimize=True)
        write_output(self.out, picture.getvalue())
        print(f"picture of {len(levels)} levels: {self.out}")

    def _scene(self, level: Level, novelty: str = "") -> Scene:
        """The scene once everything has come to rest."""
        world = World(level, self.preset, make_change({novelty: 1.0} if novelty else {}))
        world.settle()
        return world.scene()

    def _write(self, levels: list[tuple[str, Level]]) -> None:
        make_folder(self.out)
        n_files = 0
        with locked(self.out):
            remove_temporaries(self.out)
            for template, level in levels:
                changed = NOVELTIES[template](1.0).level(level) if self.novelty else level
                self._write_level(level, level.name)
                n_files += 1
                if changed != level:
                    self._write_level(changed, f"{level.name}-novel")
                    n_files += 1
        first = self.out / f"{levels[0][1].name}.xml"
        print(f"{n_files} files in {self.out}   next: {line('birds', 'play', first)}")

    def _write_level(self, level: Level, name: str) -> None:
        write_output(self.out / f"{name}.xml", files.text_of(level).encode())


def _describe(novelty: str) -> str:
    """What a novelty does."""
    words = (NOVELTIES[novelty].__doc__ or "").splitlines()[0].rstrip(".").partition(";")[0]
    return words[:1].lower() + words[1:]
