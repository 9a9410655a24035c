"""Planners: the official one with its published errors, the exact one in our physics."""

from math import atan2, cos, degrees, hypot, radians, sin, sqrt

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from domains.angrybirds.birds_range import FALL, ORIGIN, Log, level, parabola, release
from nappingrl.domains.angrybirds.physics.scene import Box, Camera
from nappingrl.domains.angrybirds.trajectory import (
    HIGH,
    LOW,
    TAP_PERCENT,
    ExactPlanner,
    OfficialPlanner,
    exact_angles,
    flight_height,
    make_planner,
)
from nappingrl.errors import UnknownNameError


def launch_angle(reference: tuple[float, float], release: tuple[float, float]) -> float:
    return atan2(release[1] - reference[1], reference[0] - release[0])


SLING = Box(92, 248, 104, 286)
"""Of Phy-Q: 12 x 38 pixels."""
SCALE = 640 / 35
ORIGIN_PX = (97.8, 252.8)
ROW = 281
TARGETS = (260, 320, 384, 420, 440, 460, 475)
LANDINGS = {LOW: (251, 314, 386, 427, 447, 470, 485), HIGH: (267, 329, 393, 429, 449, 468, 484)}


def landing(release_px: tuple[float, float], row: float = ROW) -> float:
    """Where the true flight of a release point comes down to a row of the screen, by hand."""
    angle = atan2(release_px[1] - ORIGIN_PX[1], ORIGIN_PX[0] - release_px[0])
    up = (ORIGIN_PX[1] - row) / SCALE + sin(angle)  # from the start of the flight
    vy = 10 * sin(angle)
    t = (vy + sqrt(vy * vy - 2 * FALL * up)) / FALL
    return ORIGIN_PX[0] + SCALE * (-cos(angle) + 10 * cos(angle) * t)


@pytest.mark.parametrize("trajectory", [LOW, HIGH])
def test_the_official_planner_misses_as_published(trajectory: int) -> None:
    planner = OfficialPlanner(SLING)
    for target, expected in zip(TARGETS, LANDINGS[trajectory], strict=True):
        angle = planner.angle((target, ROW), trajectory)
        assert angle is not None
        assert landing(planner.release(angle)) == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("trajectory", [LOW, HIGH])
def test_the_published_misses_are_those_of_the_simulated_world(trajectory: int) -> None:
    planner, camera = OfficialPlanner(SLING), Camera()
    for target, expected in zip(TARGETS[::3], LANDINGS[trajectory][::3], strict=True):
        angle = planner.angle((target, ROW), trajectory)
        assert angle is not None
        x, y = camera.to_world(*planner.release(angle))
        log = Log(level())
        way = degrees(atan2(ORIGIN[1] - y, ORIGIN[0] - x))
        log.launch(way)
        bottom = camera.to_world(0, ROW)[1]
        log.step_until(lambda log=log, bottom=bottom: log.place(log.bird)[1] < bottom)
        (x1, y1), (x0, y0) = log.place(log.bird), log.place(log.bird, -2)
        where = x1 + (x0 - x1) * (bottom - y1) / (y0 - y1)
        assert camera.to_pixels(where, 0)[0] == pytest.approx(expected, abs=2)


@pytest.mark.parametrize(("target", "expected"), [(180, 322), (220, 253)])
def test_the_official_planner_shoots_upwards_at_near_low_targets(target: int, expected: int) -> None:
    """Published: the sign of the angle is lost."""
    planner = OfficialPlanner(SLING)
    angle = planner.angle((target, ROW), LOW)
    assert angle is not None
    assert angle >= 0
    assert landing(planner.release(angle)) == pytest.approx(expected, abs=3)


def test_the_official_reference_point_and_release() -> None:
    planner = OfficialPlanner(SLING)
    assert planner.reference == (97, 252)  # both offsets go by the width
    assert planner.release(0.0) == (97 - 5 * 38, 252)
    assert planner.release(1.0) == (-5, 411)  # -5.66 and 411.88, cut


def test_the_official_angle_by_hand() -> None:
    """In its own world, without the correction, its shot passes the target."""
    planner = OfficialPlanner(SLING)
    size = 50
    g, v = 0.48 * 9.81 / 2.7 * size, 9.5 / 2.7 * size
    for target in ((300, 260), (380, 230), (450, 281)):
        x, y = target[0] - 97, 252 - target[1]
        for trajectory, correction in ((LOW, 1e-4), (HIGH, 5e-5)):
            angle = planner.angle(target, trajectory)
            assert angle is not None
            theta = angle - correction * hypot(x, y)
            t = x / (v * cos(theta))
            assert v * sin(theta) * t - g * t * t / 2 == pytest.approx(y, abs=1e-6)


def test_the_official_planner_knows_no_way_to_what_is_too_far() -> None:
    planner = OfficialPlanner(SLING)
    assert planner.angle((620, 100), LOW) is None
    assert planner.angle((620, 100), HIGH) is None


def test_the_official_tap_time_by_hand() -> None:
    planner = OfficialPlanner(SLING)
    theta = 0.5
    tap_x = 92 + 0.77 * (384 - 92)
    expected = int(((tap_x - 97) + 0.4 * 50 * cos(theta)) / 50 / (9.5 / 2.7 * cos(theta)) * 815)
    assert planner.tap_ms((384, 281), theta, 77) == expected
    assert planner.tap_ms((384, 281), theta, 0) == 0
    assert 900 < expected < 1400


def test_tap_intervals_of_the_naive_agent() -> None:
    assert TAP_PERCENT == {"red": (0, 0), "yellow": (65, 89), "white": (50, 69), "black": (0, 0), "blue": (65, 84)}


@pytest.mark.parametrize("degree", [-20, 0, 10, 43.6, 80])
def test_a_release_point_means_its_angle(degree: float) -> None:
    angle = radians(degree)
    for planner, reference in ((ExactPlanner((100, 250), SCALE), (100, 250)), (OfficialPlanner(SLING), (97, 252))):
        assert launch_angle(reference, planner.release(angle)) == pytest.approx(angle, abs=0.01)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(x=st.floats(2, 20), y=st.floats(-1.8, 8))
def test_exact_angles_pass_the_target(x: float, y: float) -> None:
    angles = exact_angles(x, y)
    assume(angles)
    assert len(angles) == 2
    assert angles[0] <= angles[1]
    for angle in angles:
        t = (x + cos(angle)) / (10 * cos(angle))
        px, py = parabola(degrees(angle), t)
        assert (px - ORIGIN[0], py - ORIGIN[1]) == pytest.approx((x, y), abs=1e-6)
        assert flight_height(angle, x) == pytest.approx(y, abs=1e-6)


def test_exact_angles_meet_at_the_greatest_reach() -> None:
    """Published: 9.445 at 43.6 degrees, from an origin 1.8 over the ground."""
    reach = 9.445 - ORIGIN[0]
    low, high = exact_angles(reach - 0.05, -1.8)
    assert degrees(low) < 43.6 < degrees(high)
    assert degrees(high - low) < 8
    assert exact_angles(reach + 0.05, -1.8) == ()


@pytest.mark.parametrize("trajectory", [LOW, HIGH])
@pytest.mark.parametrize("target", [(200, 275), (260, 281), (384, 281), (400, 220), (300, 150), (470, 270)])
def test_the_exact_planner_hits_what_it_aims_at(target: tuple[int, int], trajectory: int) -> None:
    camera = Camera()
    planner = make_planner("exact", SLING, SCALE)
    angle = planner.angle(target, trajectory)
    assert angle is not None
    x, y = camera.to_world(*planner.release(angle))
    log = Log(level())
    log.launch(degrees(atan2(ORIGIN[1] - y, ORIGIN[0] - x)))
    log.step_until(lambda: camera.to_pixels(*log.place(log.bird))[0] >= target[0])
    (x1, y1), (x0, y0) = (camera.to_pixels(*log.place(log.bird, k)) for k in (-1, -2))
    passed = y1 + (y0 - y1) * (x1 - target[0]) / (x1 - x0)
    slope = abs((y1 - y0) / (x1 - x0))
    assert abs(passed - target[1]) < 2.5 * sqrt(1 + slope**2)  # the sling's box is in whole pixels


def test_the_exact_planner_shoots_down_at_near_low_targets() -> None:
    planner = make_planner("exact", SLING, SCALE)
    angle = planner.angle((140, 281), LOW)
    assert angle is not None
    assert angle < 0


def test_the_exact_planner_knows_no_way_to_what_is_too_far() -> None:
    planner = ExactPlanner(ORIGIN_PX, SCALE)
    assert planner.angle((520, 281), LOW) is None
    assert planner.angle((520, 281), HIGH) is None


def test_the_exact_tap_comes_at_its_share_of_the_way() -> None:
    planner = ExactPlanner(ORIGIN_PX, SCALE)
    target = (ORIGIN_PX[0] + 10 * SCALE, 270)
    angle = planner.angle(target, LOW)
    assert angle is not None
    seconds = planner.tap_ms(target, angle, 70) / 1000
    assert parabola(degrees(angle), seconds)[0] - ORIGIN[0] == pytest.approx(7, abs=0.01)


def test_unknown_planner() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'official'"):
        make_planner("officially", SLING, SCALE)


def test_release_of_the_range_is_that_of_the_screen() -> None:
    """What the other tests take for granted: the slingshot's origin is at 97.8, 252.8 on the screen."""
    assert Camera().to_pixels(*ORIGIN) == pytest.approx(ORIGIN_PX, abs=0.05)
    assert release(0) == pytest.approx((ORIGIN[0] - 1, ORIGIN[1]))
