"""`napping birds levels`: own levels as files, or as one picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from nappingrl.cli.console import progress
from nappingrl.errors import BadSpecError

if TYPE_CHECKING:
    from nappingrl.domains.angrybirds.physics.scene import Level, Scene

MOST_PICTURES = 200
"""Of one sheet."""


@dataclass(frozen=True)
class Levels:
    """Write own levels as XML files into a folder, or side by side into a picture.

    Templates, each with the novelty it is for: green-egg, bone, taller-slingshot, pig-color, circumcircle,
    floating-wood, bird-likes-pig. Other novelties: bouncier-bird, tougher-wood, lighter-blocks, no-gravity-for-birds,
    storm, grayscale, rotated-screen.

    Example: napping birds levels levels.png --template bone --novelty --count 4
    """

    out: Positional[Path]
    """A .png for a picture, or a folder for XML files."""
    template: str = "all"
    """Name of a template, or all."""
    count: int = 1
    """Levels of each template."""
    number: int = 0
    """Number of the first of them."""
    novelty: bool = False
    """Each level after its novelty, too. In files only what stands there can be seen of it."""
    preset: str = "phyq"
    """Constants of the physics: phyq or sailon."""

    def __call__(self) -> None:
        """Make them, and say where they are."""
        from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
        from nappingrl.errors import check_name

        check_name("template", self.template, ("all", *TEMPLATES))
        if self.count < 1 or self.number < 0:
            raise BadSpecError(
                f"--count {self.count}, --number {self.number}; allowed: --count 1, 2, ..., --number 0, ..."
            )
        templates = list(TEMPLATES) if self.template == "all" else [self.template]
        made = [(name, make_level(name, self.number + i)) for name in templates for i in range(self.count)]
        if self.out.suffix.lower() == ".png":
            self._draw(made)
        elif self.out.suffix:
            raise BadSpecError(f"'{self.out}' ends with '{self.out.suffix}'; give a .png, or a folder without a suffix")
        else:
            self._write(made)

    def _draw(self, made: "list[tuple[str, Level]]") -> None:
        from PIL import Image

        from nappingrl.domains.angrybirds.pictures.sheet import contact_sheet

        n_pictures = len(made) * (1 + self.novelty)
        if n_pictures > MOST_PICTURES:
            raise BadSpecError(f"{n_pictures} pictures on one sheet; at most {MOST_PICTURES}: give a smaller --count")
        shown: list[tuple[str, Scene]] = []
        with progress("levels") as tell:
            for i, (template, level) in enumerate(made):
                tell(i, len(made))
                shown.append((level.name, self._look(level)))
                if self.novelty:
                    shown.append((f"after {template}: {_words(template)}", self._look(level, template)))
        columns = 2 if self.novelty or self.count == 1 else min(self.count, 4)
        try:
            Image.fromarray(contact_sheet(shown, columns)).save(self.out, optimize=True)
        except OSError as error:
            raise BadSpecError(f"'{self.out}' cannot be written ({error.strerror})") from error
        print(f"picture of {len(made)} levels: {self.out}")

    def _look(self, level: "Level", novelty: str = "") -> "Scene":
        """What there is to be seen once nothing moves."""
        from nappingrl.domains.angrybirds.novelties import make_change
        from nappingrl.domains.angrybirds.physics.world import World

        world = World(level, self.preset, make_change({novelty: 1.0} if novelty else {}))
        world.settle()
        return world.scene()

    def _write(self, made: "list[tuple[str, Level]]") -> None:
        from nappingrl.domains.angrybirds.levels import files as levels
        from nappingrl.domains.angrybirds.novelties import KINDS
        from nappingrl.trials.store import make_folder

        make_folder(self.out)
        n_files = 0
        for template, level in made:
            changed = KINDS[template](1.0).level(level) if self.novelty else level
            levels.write(level, self.out / f"{level.name}.xml")
            n_files += 1
            if changed != level:
                levels.write(changed, self.out / f"{level.name}-novel.xml")
                n_files += 1
        first = self.out / f"{made[0][1].name}.xml"
        print(f"{n_files} files in {self.out}   next: napping birds play {first}")


def _words(novelty: str) -> str:
    """What a novelty does, in a few words."""
    from nappingrl.domains.angrybirds.novelties import KINDS

    words = (KINDS[novelty].__doc__ or "").splitlines()[0].rstrip(".").partition(";")[0]
    return words[:1].lower() + words[1:]
