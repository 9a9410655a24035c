"use strict";
// Draws the curves of the trials that are chosen. All numbers are in the element "data"; nothing is fetched.
(() => {
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("data").textContent);
  // plotly reads some HTML in names: make it read none.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
  const [low, high] = data.range;
  const margin = 0.04 * (high - low);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // The colour of a run; on a dark page dark colours become lighter.
  function inked(run) {
    const [red, green, blue] = [1, 3, 5].map((i) => parseInt(run.colour.slice(i, i + 2), 16));
    if (!dark.matches || 0.21 * red + 0.72 * green + 0.07 * blue > 90) return run.colour;
    const lighter = (value) => Math.round(value + 0.6 * (255 - value)).toString(16).padStart(2, "0");
    return `#${lighter(red)}${lighter(green)}${lighter(blue)}`;
  }
  const narrow = () => window.innerWidth < 640;
  const state = { statistic: data.statistic, split: 0, group: 0 };

  const split = () => data.splits[state.split];
  const group = () => split().groups[state.group];

  function traces() {
    return data.runs.flatMap((run, i) => {
      const found = group().runs[i];
      const y = found ? found[state.statistic] : [];
      const x = y.map((_, k) => run.first + k);
      const band = found && found[state.statistic + "_band"];
      const line = {
        x, y, name: plain(run.name), legendgroup: String(i), mode: "lines+markers", visible: run.hidden ? "legendonly" : true,
        marker: { symbol: run.symbol, size: 8, color: colour("paper"), line: { color: inked(run), width: 1.5 }, maxdisplayed: 12 },
        line: { color: inked(run), dash: run.dash, width: 2 },
        customdata: band ? x.map((_, k) => ` (${band[0][k]} to ${band[1][k]})`) : x.map(() => ""),
        hovertemplate: "%{y}%{customdata}",
      };
      const area = {
        x: band ? [...x, ...[...x].reverse()] : [], y: band ? [...band[1], ...[...band[0]].reverse()] : [],
        legendgroup: String(i), visible: run.hidden ? "legendonly" : true, showlegend: false, hoverinfo: "skip", mode: "lines", fill: "toself",
        fillcolor: inked(run) + "26", line: { width: 0, color: inked(run) },
      };
      return [area, line];
    });
  }

  // The look of both plots, in the colours of the page.
  const look = (x, y) => ({
    font: { family: "system-ui, sans-serif", size: narrow() ? 12 : 14, color: colour("ink") },
    margin: narrow() ? { l: 48, r: 8, t: 28, b: 60 } : { l: 64, r: 16, t: 28, b: 80 },
    paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"), hovermode: narrow() ? "closest" : "x unified",
    hoverlabel: { bgcolor: colour("paper"), font: { color: colour("ink") } },
    legend: { orientation: "h", x: 0, y: -0.15, yanchor: "top" },
    xaxis: { zeroline: false, gridcolor: colour("grid"), ...x }, yaxis: { zeroline: false, gridcolor: colour("grid"), ...y },
    uirevision: "keep",
  });

  const layout = () => ({
    ...look({ title: { text: "episode", standoff: 8 }, hoverformat: "d" },
      { title: { text: `return, ${state.statistic} over trials` }, range: [low - margin, high + margin] }),
    shapes: [{ type: "line", x0: -0.5, x1: -0.5, y0: 0, y1: 1, yref: "paper", line: { color: colour("soft"), width: 1.5 } }],
    annotations: [{ text: "novelty", x: -0.5, y: 1, yref: "paper", yanchor: "bottom", showarrow: false }],
  });

  const settings = { responsive: true, displaylogo: false, plotlyServerURL: "", modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };

  function showProfiles() {
    const lines = data.profiles.flatMap((found, i) => {
      const run = data.runs[i];
      const line = {
        x: found.x, y: found.y, name: plain(run.name), legendgroup: String(i), mode: "lines", visible: run.hidden ? "legendonly" : true,
        line: { color: inked(run), dash: run.dash, width: 2 }, hovertemplate: "%{y:.0%}",
      };
      const area = {
        x: found.band ? [...found.x, ...[...found.x].reverse()] : [],
        y: found.band ? [...found.band[1], ...[...found.band[0]].reverse()] : [],
        legendgroup: String(i), visible: run.hidden ? "legendonly" : true, showlegend: false, hoverinfo: "skip", mode: "lines",
        fill: "toself", fillcolor: inked(run) + "26", line: { width: 0, color: inked(run) },
      };
      return [area, line];
    });
    const axes = look({ title: { text: "mean return of the last ten episodes, at least", standoff: 8 } },
      { title: { text: "share of trials" }, range: [-0.03, 1.03], tickformat: ".0%" });
    return Plotly.react("profiles", lines, axes, settings);
  }

  const number = (value) => value.toFixed(Math.min(data.digits, 2)).replace(/^-(0\.?0*)$/, "$1");
  const share = (value) => `${Math.round(100 * value)}%`;

  function withInterval(values, n, write) {
    const cell = element("td", write(values[0]) + " ");
    const none = n === 1 ? "one trial: no interval" : "too few trials: no interval";
    const [, from, to] = values;
    const spread = from === to ? "the same in all trials" : `${write(from)} to ${write(to)}`;
    cell.append(element("small", values.length > 1 ? spread : none));
    return cell;
  }

  function showEnds() {
    at("ends").replaceChildren(...data.runs.map((run, i) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const key = element("span", "");
      key.className = "key";
      key.style.borderTopColor = inked(run);
      key.style.borderTopStyle = run.dash === "solid" ? "solid" : "dashed";
      head.append(key, run.name);
      const found = group().runs[i];
      if (!found) {
        row.append(head, element("td", "0"), element("td", "-"), element("td", "-"));
      } else {
        row.append(head, element("td", found.n), withInterval(found.level, found.n, number),
          found.solved ? withInterval(found.solved, found.n, share) : element("td", "-"));
      }
      return row;
    }));
  }

  function words() {
    const counts = group().runs.map((found) => (found ? found.n : 0));
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    const trials = `${least === most ? most : `${least} to ${most}`} trial${most === 1 ? "" : "s"} per run`;
    const few = most === 1 ? "; one trial: no interval" : "";
    if (split().kind === "all") return `All trials: ${trials}${few}.`;
    return `${split().name.replace(/ \(.*/, "")} ${group().label}: ${trials}${few}.`;
  }

  function show() {
    at("shown").textContent = words();
    at("bin").setAttribute("aria-valuetext", words());
    showEnds();
    return Plotly.react("plot", traces(), layout(), settings);
  }

  function chooseSplit(index) {
    state.split = index;
    state.group = 0;
    const { kind, groups } = split();
    at("names").hidden = kind !== "names";
    at("bins").hidden = kind !== "bins";
    at("name").replaceChildren(...groups.map((one, i) => new Option(one.label, String(i))));
    at("bin").max = String(groups.length - 1);
    at("bin").value = "0";
  }

  at("split").replaceChildren(...data.splits.map((one, i) => new Option(one.name, String(i))));
  at("split").addEventListener("change", (event) => { chooseSplit(Number(event.target.value)); show(); });
  for (const id of ["name", "bin"]) {
    at(id).addEventListener("input", (event) => { state.group = Number(event.target.value); show(); });
  }
  for (const radio of document.getElementsByName("statistic")) {
    radio.checked = radio.value === state.statistic;
    radio.addEventListener("change", () => { state.statistic = radio.value; show(); });
  }

  const trial = at("trial");
  if (trial) {
    const choose = () => document.querySelectorAll("article.trial").forEach((one) => { one.hidden = one.id !== trial.value; });
    trial.addEventListener("change", choose);
    choose();
  }

  for (const id of ["plot", "profiles"]) {
    const columns = narrow() ? 1 : 3;
    at(id).style.height = `${(narrow() ? 22 : 27) + 2 * Math.ceil(data.runs.length / columns)}rem`; // room for the legend
  }
  dark.addEventListener("change", () => { show(); showProfiles(); });
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  chooseSplit(0);
  at("split").value = "0";
  show();
  showProfiles();
})();
