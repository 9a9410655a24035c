"""A world in real time ends like one that plays whole shots."""

from domains.angrybirds.play.plays import ONE_PIG
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.play.live_world import LiveWorld


def test_a_tap_in_flight_equals_a_shot_with_that_tap() -> None:
    level = Level("taps", ("BirdYellow",), ONE_PIG.items)
    live, planned = LiveWorld(level), World(level)
    release = (-14.0, -3.0)
    live.tap()
    assert live.launch(release)
    while live.is_under_way:
        if live.ticks == 150 + 39:
            live.tap()
        live.tap() if live.ticks > 200 else None
        live.advance(1)
    assert planned.shoot(release, tap_ms=800)
    assert (live.dots, live.score, live.status) == (planned.dots, planned.score, planned.status)
    untapped = World(level)
    untapped.shoot(release)
    assert untapped.dots != planned.dots
