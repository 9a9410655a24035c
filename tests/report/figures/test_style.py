"""The common parts of figures."""

from nappingrl.report.figures.style import add_legend, new_canvas, settle


def test_a_long_legend_makes_the_figure_taller_instead_of_covering_it() -> None:
    canvas = new_canvas(7.0, 3.0)
    axes = canvas.subplots()
    for n in range(20):
        axes.plot([0, 1], [n, n], label=f"a run with a long name, {n}" * 3)
    add_legend(canvas, [axes])
    settle(canvas)  # warns, which is an error, where no room is left for the panel
    legend = canvas.legends[0].get_window_extent().y1
    assert axes.get_window_extent().y0 > legend
    assert axes.get_window_extent().height > 0.3 * 3.0 * canvas.dpi
