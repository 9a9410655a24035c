"""What a tab is told about a match: once at its beginning (`about`), then frame by frame."""

import base64
import io
from dataclasses import asdict
from itertools import takewhile
from typing import Any

import numpy as np

from nappingrl.domains.canvas import SIZE, Sketch
from nappingrl.explain import explained, summarise_principles
from nappingrl.play.choices import Choices
from nappingrl.play.copies import as_command, as_film, as_python, as_query
from nappingrl.play.embedding import EmbeddingMap
from nappingrl.play.film import MAX_FILM_SECONDS
from nappingrl.play.imagined import imagined
from nappingrl.play.match import Match, method_names, title_of
from nappingrl.play.pane import ROW, Pane
from nappingrl.play.watched import WatchedPane
from nappingrl.registry import domains

SLOW = 12
"""Frames between two looks at what changes slowly: rules, regions, contexts."""
MAX_GAUGE = 400
"""Values of the detector's statistic that a frame carries at most."""
RULES_EVERY = 8
"""Looks at what changes slowly between two summaries of principles."""
MAX_RULES = 4
JPEG_QUALITY = 82


class Frames:
    """Describes a match; series go on where the frame before ended."""

    def __init__(self, match: Match, choices: Choices, number: int) -> None:
        self.match, self.choices, self.number = match, choices, number
        self._map = EmbeddingMap(match)
        self._n_frames = 0
        self._shapes: list[list[Any]] = [[], []]
        self._gauge: list[float | None] = []
        self._sent = [-1, -1]
        """The latest episode of each pane that a frame told of."""
        self._rules: list[str] = []
        self._regions: list[list[float]] = []
        self._n_facts = 0
        self._read_at: tuple[Any, ...] = ()
        """Context and rule when principles were last read."""
        self._imagined_in = -1
        """The episode that the latest imagined rollout belongs to."""

    def note_step(self) -> None:
        """A step was made."""
        gauge = self.match.adapting.gauge
        self._gauge.append(None if gauge is None else _number(gauge.value))

    def about(self) -> dict[str, Any]:
        """What a tab needs to know once per match."""
        match, world, choices = self.match, self.match.world, self.choices
        spec, domain = match.spec, world.domain
        return {
            "kind": "about",
            "match": self.number,
            "domain": spec.domain,
            "title": domain.title,
            "domains": {name: _domain_title(name) for name in choices.domain_names()},
            "agent": self._own_name or world.agent,
            "agents": choices.agents_of(spec.domain),
            "method": spec.method,
            "methods": {name: title_of(name) for name in method_names(world, match.agent)},
            "seed": spec.seed,
            "sliders": [asdict(slider) for slider in world.sliders],
            "switches": [asdict(switch) for switch in world.switches],
            "novelties": {
                name: novelty.description for name, novelty in world.novelties.items() if self._is_open(name)
            },
            "actions": list(domain.action_labels),
            "observations": list(domain.observation_labels),
            "detector": match.adapting.spec.detector,
            "range": list(domain.return_range) if domain.return_range else None,
            "fps": domain.frames_per_second,
            "size": list(SIZE),
            "n_before": spec.n_before,
            "film": MAX_FILM_SECONDS,
        }

    def copies(self) -> dict[str, str]:
        """The match to take away."""
        match = self.match
        return {
            "python": as_python(match),
            "command": as_command(match),
            "film": as_film(match),
            "link": as_query(match, self._own_name),
        }

    @property
    def _own_name(self) -> str:
        """The name of the command line's agent, if it plays."""
        is_own = bool(self.choices.agent) and self.match.spec.agent == self.choices.agent
        return self.choices.own_name if is_own else ""

    def _is_open(self, name: str) -> bool:
        known = self.match.world.domain.parameters
        return all(flat in known for flat in self.match.world.novelties[name].ranges)

    def frame(self, is_paused: bool = False, speed: float = 1.0) -> dict[str, Any]:
        """What there is to show now."""
        self._n_frames += 1
        match = self.match
        gauge, gauge_values = match.adapting.gauge, self._gauge[-MAX_GAUGE:]
        self._gauge = []
        frame: dict[str, Any] = {
            "kind": "frame",
            "match": self.number,
            "frame": self._n_frames,
            "tick": match.n_ticks,
            "paused": is_paused,
            "speed": speed,
            "panes": [self._pane(i, pane) for i, pane in enumerate(match.panes)],
            "changes": match.changes,
            "gauge": gauge_values,
            "point": self._map.point(match.adapting),
        }
        if gauge is not None:
            frame["limits"] = [gauge.label, _number(gauge.low), _number(gauge.high)]
        is_due = is_paused or self._n_frames % SLOW == 1
        if is_due or match.adapting.episode != self._imagined_in:
            frame["imagined"] = imagined(match.adapting)
            self._imagined_in = match.adapting.episode
        if is_due:
            frame["facts"] = self._facts()
        return frame

    def _pane(self, i: int, pane: Pane | WatchedPane) -> dict[str, Any]:
        fresh = list(takewhile(lambda e: e.number > self._sent[i], reversed(pane.episodes)))[::-1]
        self._sent[i] = pane.episode - 1
        said: dict[str, Any] = {
            "episode": pane.episode,
            "step": pane.step_number,
            "total": _number(pane.total),
            "ended": [[e.number, _number(e.total), e.world, self.match.n_ticks] for e in fresh],
            "override": pane.is_overriding,
        }
        if isinstance(pane, WatchedPane):
            said["note"] = pane.note
        if any(pane.action_words):
            said["words"] = pane.action_words
        if pane.wanted is not None and pane.executed is not None:
            said |= {"wanted": pane.wanted.actions[0].tolist(), "does": pane.executed[0].tolist()}
        return said | self._picture(i, pane.sketch())

    def _picture(self, i: int, sketch: Sketch) -> dict[str, Any]:
        """Shapes, with 0 for one that is the same as in the frame before; or a JPEG."""
        if sketch.picture is not None:
            return {"image": _jpeg(sketch)}
        before, self._shapes[i] = self._shapes[i], sketch.shapes
        is_alike = len(before) == len(sketch.shapes)
        return {"shapes": [0 if is_alike and shape == before[k] else shape for k, shape in enumerate(sketch.shapes)]}

    def _read_principles(self, pane: Pane, rule: str) -> None:
        """Rules and regions; reading them takes long, so now and then only, and where they are others."""
        now = int(pane.adaptation.contexts[0]), rule
        self._n_facts += 1
        if self._n_facts % RULES_EVERY != 1 and now == self._read_at:
            return
        self._read_at = now
        table = pane.adaptation.method.table(0)
        self._regions = self._map.regions(pane, table)
        self._rules = [] if rule or not table else self._say_rules(pane, table)

    def _say_rules(self, pane: Pane, table: dict[str, Any]) -> list[str]:
        """The principles as rules, the most visited first, and how much they describe."""
        names = pane.adaptation.method.choice_names or pane.world.domain.action_labels
        rules = summarise_principles(table, pane.world.domain, names)[:MAX_RULES]
        said = [f"together they describe {explained(rules):.0%} of what its principles do"] if rules else []
        return [*map(str, rules), *said]

    def _facts(self) -> dict[str, Any]:
        """What changes slowly."""
        match, pane = self.match, self.match.adapting
        status = pane.status
        alarm = pane.alarms[-1] if pane.alarms else None
        regions, n_open = pane.adaptation.method.regions(ROW)
        self._read_principles(pane, status.rule)
        return {
            "world": match.describe_world(match.worlds.index(match.changes)),
            "state": status.state,
            "status": status.detector,
            "acting": title_of(status.acting) if status.acting else "",
            "rule": status.rule,
            "why": status.why,
            "rules": self._rules,
            "alarm": None if alarm is None else asdict(alarm),
            "contexts": {str(key): int(n) for key, n in pane.adaptation.method.context_sizes(0).items()},
            "context": int(pane.adaptation.contexts[0]),
            "regions": int(regions[0]),
            "open": int(n_open[0]),
            "oracle": _number(match.oracle_level),
            "map": self._regions,
        }


def _number(value: float | None) -> float | None:
    """A number for JSON."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def _domain_title(name: str) -> str:
    return domains.entry(name).title if name in domains else name


def _jpeg(sketch: Sketch) -> str:
    from PIL import Image

    assert sketch.picture is not None
    file = io.BytesIO()
    Image.fromarray(sketch.picture).save(file, "JPEG", quality=JPEG_QUALITY)
    return base64.b64encode(file.getvalue()).decode()
