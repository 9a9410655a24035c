"""A short life of every method and every detector, with a small limit; and what counts as growth."""

from dataclasses import replace

import pytest

from tests.attack.growth import Life, Report, check_memory, live, lives

LIVES = [replace(life, steps=800, max_regions=min(life.max_regions, 100)) for life in lives(1.0, seed=1)]


@pytest.mark.filterwarnings("ignore::nappingrl.AdaptationWarning")  # some detectors never alarm here
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_every_method_and_detector_stays_within_its_limits(life: Life) -> None:
    report = live(life)
    assert report.failures == []
    assert not report.is_refused
    assert report.regions > 50 or life.detector != "given" or life.method not in ("napping", "napping-ucb")


@pytest.mark.parametrize(
    ("megabytes", "n_failures"),
    [([90, 100, 119], 0), ([90, 100, 121], 1), ([90, 1000, 1049], 0), ([90, 1000, 1051], 1), ([500, 300, 301], 0)],
)
def test_growth_in_the_second_half_is_a_failure(megabytes: list[float], n_failures: int) -> None:
    report = Report(LIVES[0], megabytes=megabytes)
    check_memory(report)
    assert len(report.failures) == n_failures
