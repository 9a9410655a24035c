// Charts of a match: returns, the detector's statistic, a map of the embedding.

import { colour, prepare } from "./draw.js";

const EPISODES = 60;
const STEPS = 500;

function axes(pen, width, height, low, high, format) {
  const left = 38, bottom = 16, top = 6, right = 6;
  const y = (value) => top + (height - top - bottom) * (1 - (value - low) / (high - low || 1));
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  pen.lineWidth = 1;
  for (const value of [low, (low + high) / 2, high]) {
    pen.strokeStyle = colour("line");
    pen.beginPath();
    pen.moveTo(left, y(value));
    pen.lineTo(width - right, y(value));
    pen.stroke();
    pen.fillStyle = colour("muted");
    pen.fillText(format(value), left - 5, y(value));
  }
  return { left, right: width - right, top, bottom: height - bottom, y };
}

const short = (value) => (Math.abs(value) >= 1000 ? `${(value / 1000).toPrecision(2)}k` : `${+value.toPrecision(3)}`);

function dashed(pen, x0, x1, y, name) {
  pen.strokeStyle = colour(name);
  pen.setLineDash([5, 4]);
  pen.beginPath();
  pen.moveTo(x0, y);
  pen.lineTo(x1, y);
  pen.stroke();
  pen.setLineDash([]);
}

// The part of a range in which values lie, at least a quarter of it: differences are to be seen.
function within([low, high], values) {
  if (!values.length) return [low, high];
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.1 * (most - least), (high - low) / 8 - (most - least) / 2);
  return [Math.max(low, least - room), Math.min(high, most + room)];
}

// Returns over time, so that both panes share the axis although their episodes differ in length.
// `changes`: steps at which the world changed.
export function drawReturns(canvas, series, range, oracle, changes) {
  const { pen, width, height } = prepare(canvas);
  const last = Math.max(1, ...series.map((s) => (s.length ? s.at(-1)[3] : 0)));
  const first = series[1].length > EPISODES ? series[1].at(-EPISODES)[3] : 0;
  const shown = series.map((s) => s.filter((e) => e[3] >= first));
  const values = [...shown.flat().map((e) => e[1]), ...(oracle === null ? [] : [oracle])];
  const [low, high] = range ? within(range, values) : [Math.min(0, ...values), Math.max(1, ...values)];
  const box = axes(pen, width, height, low, high, short);
  const x = (tick) => box.left + 4 + ((box.right - box.left - 8) * (tick - first)) / Math.max(20, last - first);
  pen.fillStyle = colour("alert");
  pen.globalAlpha = 0.6;
  for (const tick of changes) if (tick >= first && tick <= last) pen.fillRect(x(tick) - 1, box.top, 1.5, box.bottom - box.top);
  pen.globalAlpha = 1;
  if (oracle !== null) dashed(pen, box.left, box.right, box.y(oracle), "oracle");
  ["frozen", "adapting"].forEach((name, i) => {
    pen.strokeStyle = pen.fillStyle = colour(name);
    pen.lineWidth = 2;
    pen.beginPath();
    shown[i].forEach((e) => pen.lineTo(x(e[3]), box.y(e[1])));
    pen.stroke();
    if (shown[i].length > 80) return;
    for (const e of shown[i]) {
      pen.beginPath();
      pen.arc(x(e[3]), box.y(e[1]), 2.6, 0, 2 * Math.PI);
      pen.fill();
    }
  });
  pen.fillStyle = colour("muted");
  pen.textAlign = "left";
  pen.fillText(`step ${first}`, box.left, height - 6);
  pen.textAlign = "right";
  pen.fillText(short(last), box.right, height - 6);
}

// `excuse`: why there is nothing to show, if there is not.
export function drawGauge(canvas, values, limits, excuse) {
  const { pen, width, height } = prepare(canvas);
  const [, low, high] = limits || ["", null, null];
  const isShare = high === 1;
  const bend = (v) => (isShare ? Math.log10(1 + 9 * Math.max(v, 0)) : v);
  const known = values.filter((v) => v.value !== null).map((v) => bend(v.value));
  const marks = [low, high].filter((v) => v !== null).map(bend);
  const top = Math.max(...known, ...marks, isShare ? 1.5 : -Infinity);
  const least = isShare ? 0 : Math.min(...known, ...marks);
  if (!Number.isFinite(top) || !Number.isFinite(least)) {
    pen.fillStyle = colour("muted");
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(excuse, 10, height / 2);
    return;
  }
  const room = 0.06 * (top - least || 1);
  const back = (v) => (isShare ? (10 ** v - 1) / 9 : v);
  const box = axes(pen, width, height, least - (isShare ? 0 : room), top + room, (v) => short(back(v)));
  const x = (i) => box.left + ((box.right - box.left) * i) / (STEPS - 1);
  for (const mark of marks) {
    pen.lineWidth = 1.5;
    dashed(pen, box.left, box.right, box.y(mark), "alert");
  }
  pen.strokeStyle = colour("adapting");
  pen.lineWidth = 1.8;
  pen.beginPath();
  let isDown = false;
  values.forEach((v, i) => {
    if (v.value === null) isDown = false;
    else if (isDown) pen.lineTo(x(i), box.y(bend(v.value)));
    else pen.moveTo(x(i), box.y(bend(v.value))), (isDown = true);
  });
  pen.stroke();
  pen.fillStyle = colour("alert");
  pen.strokeStyle = colour("card");
  pen.lineWidth = 4;
  pen.textAlign = "right";
  for (const mark of marks) {
    pen.strokeText("threshold", box.right, box.y(mark) + 9);
    pen.fillText("threshold", box.right, box.y(mark) + 9);
  }
  values.forEach((v, i) => {
    if (!v.alarm) return;
    pen.beginPath();
    pen.arc(x(i), box.top + 6, 4.5, 0, 2 * Math.PI);
    pen.fill();
    pen.fillRect(x(i) - 0.75, box.top, 1.5, box.bottom - box.top);
  });
  pen.fillStyle = colour("muted");
  pen.textAlign = "left";
  pen.fillText(`latest ${STEPS} steps`, box.left, height - 6);
}

export const GAUGE_STEPS = STEPS;

const CELL = 5;
let cells = null;

export function drawMap(canvas, sites, trail, isNew) {
  const { pen, width, height } = prepare(canvas);
  const points = [...sites.map((s) => [s[0], s[1]]), ...trail];
  if (points.length < 3) {
    pen.fillStyle = colour("muted");
    pen.font = "12px system-ui, sans-serif";
    pen.fillText("collecting states …", 10, height / 2);
    return;
  }
  const reach = (axis) => 1.1 * Math.max(1.5, ...points.map((point) => Math.abs(point[axis])));
  const scale = Math.min(width / (2 * reach(0)), height / (2 * reach(1)));
  const place = ([x, y]) => [width / 2 + x * scale, height / 2 - y * scale];
  if (sites.length) {
    if (isNew || !cells || cells.width !== Math.ceil(width / CELL)) cells = nearest(sites, place, width, height);
    pen.imageSmoothingEnabled = false;
    pen.globalAlpha = 0.55;
    pen.drawImage(cells, 0, 0, cells.width * CELL, cells.height * CELL);
    pen.globalAlpha = 1;
    pen.fillStyle = colour("text");
    for (const site of sites.slice(0, 120)) {
      const [x, y] = place(site);
      pen.fillRect(x - 1, y - 1, 2, 2);
    }
  }
  pen.strokeStyle = colour("text");
  pen.lineWidth = 1.5;
  pen.globalAlpha = 0.5;
  pen.beginPath();
  trail.forEach((p) => pen.lineTo(...place(p)));
  pen.stroke();
  pen.globalAlpha = 1;
  if (trail.length) {
    const [x, y] = place(trail.at(-1));
    pen.fillStyle = colour("adapting");
    pen.strokeStyle = colour("card");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, 6, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  }
}

// A picture of the regions: each cell has the colour of what its nearest site does.
function nearest(sites, place, width, height) {
  const picture = document.createElement("canvas");
  picture.width = Math.ceil(width / CELL);
  picture.height = Math.ceil(height / CELL);
  const pen = picture.getContext("2d");
  const places = sites.map((s) => [...place(s), s[3]]);
  for (let j = 0; j < picture.height; j++) {
    for (let i = 0; i < picture.width; i++) {
      let best = Infinity, done = -1;
      const x = (i + 0.5) * CELL, y = (j + 0.5) * CELL;
      for (const [a, b, d] of places) {
        const distance = (a - x) ** 2 + (b - y) ** 2;
        if (distance < best) (best = distance), (done = d);
      }
      pen.fillStyle = done < 0 ? colour("line") : colour(`a${done % 7}`);
      pen.fillRect(i, j, 1, 1);
    }
  }
  return picture;
}
