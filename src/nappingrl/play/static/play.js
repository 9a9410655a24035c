// The live part of the page: receives frames, draws them, and sends keys. Controls are NiceGUI's.

import { drawGauge, drawMap, drawReturns, GAUGE_STEPS } from "./charts.js";
import { forgetColours, paint, paintImage } from "./draw.js";
import { Tour } from "./tour.js";

const UNKNOWN_TAB = 4004; // the server has forgotten this page: a laptop slept, or the machine is very busy
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 16, 0];
const MAX_CHIPS = 8;
const SLIDING = 20; // changes within so many steps count as one
const LONG_RULE = 300; // characters; longer ones are smaller, and scroll
const PANES = ["frozen", "adapting"];
const $ = (id) => document.getElementById(id);
const put = (id, text) => {
  const element = $(id);
  if (element && element.textContent !== text) element.textContent = text;
};

const NOTHING = { poses: [], said: "" };
const state = {
  about: null, facts: null, frame: null, link: "",
  shapes: [[], []], returns: [[], []], gauge: [], limits: null, trail: [], overrides: [], imagined: NOTHING,
  changes: "{}", changedAt: [], n_frames: 0, shown: [], isMapNew: true, alarm: null,
};
let socket = null;

export function send(command) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
}

const tour = new Tour(send, state);

window.playground = {
  state, tour,
  take: (link) => (state.link = link),
  copyLink: () => {
    const text = `${location.origin}/?${state.link}`;
    navigator.clipboard?.writeText(text).then(() => curtain("Link copied. It works in a browser that has this playground open.", 2500), () => curtain(text, 6000));
  },
};

// ------------------------------------------------------------------------------------------------ messages

function connect() {
  const tab = document.querySelector('meta[name="tab"]').content;
  socket = new WebSocket(`ws://${location.host}/stream?tab=${tab}`);
  socket.onmessage = (event) => receive(JSON.parse(event.data));
  socket.onclose = (event) => {
    if (event.code === UNKNOWN_TAB) return setTimeout(() => location.reload(), 1000);
    curtain("The server has stopped. Start napping play again and open its new link.");
  };
}

function receive(message) {
  if (message.kind === "frame") return queue(message);
  if (message.kind === "about") begin(message);
  if (message.kind === "note" || message.kind === "wait") curtain(message.text);
  if (message.kind === "problem" && !state.frame) curtain(message.text);
}

function begin(about) {
  Object.assign(state, { about, facts: null, shapes: [[], []], returns: [[], []], gauge: [], trail: [], overrides: [], imagined: NOTHING, changes: "{}", changedAt: [], alarm: null, isMapNew: true });
  curtain("");
  for (const name of PANES) {
    const chips = about.actions.length > MAX_CHIPS ? [""] : about.actions;
    $(`${name}-actions`).replaceChildren(...chips.map((action) => Object.assign(document.createElement("span"), { textContent: action })));
  }
  $("actions").replaceChildren(...(about.actions.length > MAX_CHIPS ? [] : about.actions).map((action, i) => {
    const key = Object.assign(document.createElement("span"), { textContent: action });
    key.style.setProperty("--key", `var(--a${i % 7})`);
    return key;
  }));
  document.querySelector("#pane-adapting h2").textContent = { you: "You", oracle: "Oracle", frozen: "Frozen as well" }[about.method] ?? `With ${about.methods[about.method]}`;
  put("detector", about.detector);
  document.activeElement?.blur(); // keys are for the match again
}

// Draw with the screen; what arrives in between is merged, and each frame is acknowledged when it was shown.
let waiting = null;
function queue(frame) {
  if (waiting) show(waiting, false);
  waiting = frame;
  requestAnimationFrame(() => {
    if (!waiting) return;
    const latest = waiting;
    waiting = null;
    show(latest, true);
  });
}

// A plan takes a moment; the first one on a new machine is compiled before.
const BUSY = "Working; what is new to this machine is compiled …";
let latest = performance.now();
setInterval(() => {
  const isSilent = performance.now() - latest > 2000 && socket?.readyState === WebSocket.OPEN;
  if (isSilent && state.frame && !state.frame.paused && !document.hidden && !$("curtain").textContent) curtain(BUSY);
}, 500);

function show(frame, isDrawn) {
  latest = performance.now();
  if ($("curtain").textContent === BUSY) curtain("");
  send({ do: "ack", frame: frame.frame });
  if (!state.about || frame.match !== state.about.match) return;
  state.frame = frame;
  state.n_frames += 1;
  frame.panes.forEach((pane, i) => {
    if (pane.shapes) state.shapes[i] = pane.shapes.map((shape, k) => shape || state.shapes[i][k]);
    state.returns[i].push(...pane.ended);
    if (state.returns[i].length > 2000) state.returns[i].splice(0, 500);
  });
  note(frame);
  if (frame.facts) facts(frame.facts);
  if (!isDrawn) return;
  frame.panes.forEach((pane, i) => drawPane(PANES[i], pane, state.shapes[i]));
  put("recorded", frame.recorded === undefined ? "" : `${frame.recorded.toFixed(1)} of ${state.about.film} s`);
  if (state.n_frames % 3 === 0 || frame.paused) charts();
  state.shown.push(performance.now());
  if (state.shown.length > 200) state.shown.shift();
  tour.look();
}

function note(frame) {
  const changes = JSON.stringify(frame.changes);
  if (changes !== state.changes) {
    if (frame.tick - (state.changedAt.at(-1) ?? -Infinity) < SLIDING) state.changedAt.pop(); // a slider on its way
    state.changedAt.push(frame.tick);
    if (state.changedAt.length > 100) state.changedAt.shift();
    state.changes = changes;
  }
  for (const value of frame.gauge) state.gauge.push({ value, alarm: false });
  if (state.gauge.length > GAUGE_STEPS) state.gauge.splice(0, state.gauge.length - GAUGE_STEPS);
  if (frame.imagined) state.imagined = frame.imagined;
  if (frame.limits) state.limits = frame.limits;
  if (frame.point) state.trail.push(frame.point);
  if (state.trail.length > 60) state.trail.shift();
  state.overrides.push(frame.panes[1].override ? 1 : 0);
  if (state.overrides.length > 50) state.overrides.shift();
}

// ------------------------------------------------------------------------------------------------ showing

function drawPane(name, pane, shapes) {
  if (pane.image) paintImage($(name), pane.image);
  else paint($(name), shapes, state.about.size, name === "adapting" ? state.imagined.poses : []);
  if (name === "frozen") document.querySelector("#pane-frozen h2").textContent = pane.note === undefined ? "Frozen agent" : "Connected agent";
  if (pane.note !== undefined) put(`${name}-number`, pane.note);
  else $(`${name}-number`).innerHTML = `episode ${pane.episode} · step ${pane.step} · return <b>${+(pane.total ?? 0).toFixed(1)}</b>`;
  if (typeof pane.does !== "number") return;
  if (state.about.actions.length > MAX_CHIPS) {
    const chip = $(`${name}-actions`).firstChild;
    chip.className = "does";
    chip.textContent = state.about.method === "you" && name === "adapting" ? "your shot" : `aims at ${pane.words?.[1] ?? state.about.actions[pane.does]}`;
    return;
  }
  [...$(`${name}-actions`).children].forEach((chip, i) => {
    chip.className = `${i === pane.wanted ? "wanted " : ""}${i === pane.does ? "does" : ""}`;
  });
}

const steps = (n) => `${n} step${n === 1 ? "" : "s"}`;

// The first causes of an alarm; there may be one for each observation.
function brief(why) {
  const causes = why.split(" and ");
  return causes.length > 3 ? `${causes.slice(0, 3).join(", ")} and ${causes.length - 3} more` : why;
}

function facts(facts) {
  const { about, frame } = state;
  state.isMapNew = JSON.stringify(state.facts?.map) !== JSON.stringify(facts.map);
  const alarm = facts.alarm && JSON.stringify(facts.alarm);
  if (alarm && alarm !== state.alarm) {
    if (state.gauge.length) state.gauge.at(-1).alarm = true;
    flash("adapting", `noticed after ${steps(facts.alarm.after)}`);
  }
  state.alarm = alarm;
  state.facts = facts;
  put("oracle", facts.oracle === null ? "" : `oracle ${facts.oracle}`);
  const noticed = facts.alarm && facts.context > 0;
  put("alarm", noticed ? `${about.detector === "given" ? "Told" : "Noticed"} after ${steps(facts.alarm.after)}${facts.alarm.why ? `: ${brief(facts.alarm.why)}` : ""}` : state.limits && !facts.status.startsWith("the detector") ? `Watching: ${state.limits[0]}` : facts.status);
  $("alarm").classList.toggle("on", Boolean(noticed));
  put("acting", about.method === "you" ? (about.domain === "angrybirds" ? "You act: drag the bird back with the mouse and let go." : "You act: arrow keys.") : facts.acting ? `In force: ${facts.acting}` : facts.why ? `The frozen agent acts: ${facts.why}` : "The trained agent acts as it was trained.");
  put("rule", facts.rule || facts.rules.join("\n"));
  $("rule").classList.toggle("many", !facts.rule && facts.rules.length > 0);
  $("rule").classList.toggle("long", facts.rule.length > LONG_RULE);
  const share = state.overrides.reduce((a, b) => a + b, 0) / Math.max(1, state.overrides.length);
  document.querySelector(".ruling").classList.toggle("overrides", share > 0 && about.method !== "you");
  $("actions").hidden = !facts.map.length;
  const pane = frame.panes[1];
  const [wanted, does] = pane.words ?? [about.actions[pane.wanted], about.actions[pane.does]];
  put("imagined", state.imagined.said);
  put("override", !share || about.method === "you" ? "" : pane.override && typeof pane.does === "number" ? `wanted ${wanted}, does ${does}` : `${Math.round(100 * share)} % of the latest actions are not what the agent wanted`);
  const contexts = Object.keys(facts.contexts).filter((context) => context !== "0").length;
  put("contexts", `${contexts} context${contexts === 1 ? "" : "s"} learned · now in ${facts.context ? `context ${facts.context}` : "the original one"}`);
  put("regions", `${facts.regions} region${facts.regions === 1 ? "" : "s"}${facts.open ? `, ${facts.open} still open` : ""}`);
}

function charts() {
  drawReturns($("returns"), state.returns, state.about.range, state.facts?.oracle ?? null, state.changedAt);
  const excuse = state.about.detector === "given" ? "it is told of changes, and measures nothing" : "nothing to judge yet";
  drawGauge($("gauge"), state.gauge, state.limits, excuse);
  drawMap($("map"), state.facts?.map ?? [], state.trail, state.isMapNew);
  state.isMapNew = false;
}

function flash(name, text) {
  put(`${name}-flash`, text);
  $(`${name}-flash`).classList.add("on");
  setTimeout(() => $(`${name}-flash`)?.classList.remove("on"), 4000);
}

let curtainTimer = 0;
function curtain(text, milliseconds = 0) {
  clearTimeout(curtainTimer);
  put("curtain", text);
  $("curtain").classList.toggle("busy", text.endsWith("…"));
  if (milliseconds) curtainTimer = setTimeout(() => put("curtain", ""), milliseconds);
}

// ------------------------------------------------------------------------------------------------ keys

const ARROWS = { ArrowLeft: "LEFT", ArrowRight: "RIGHT", ArrowUp: "UP", ArrowDown: "DOWN" };

function key(event) {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches?.("input, textarea, [role=slider], [role=listbox], [role=combobox]")) return;
  const arrow = ARROWS[event.key];
  if (arrow && state.about?.method === "you") {
    const action = state.about.actions.indexOf(arrow);
    if (action >= 0) send({ do: "act", action });
    event.preventDefault();
    return;
  }
  if (event.key === " " && target.closest?.("button, [role=switch], a")) return;
  const at = SPEEDS.indexOf(state.frame?.speed ?? 1);
  const commands = {
    " ": { do: "pause" }, ".": { do: "step" }, r: { do: "restart" }, s: { do: "novelty" }, b: { do: "world", number: 0 },
    "+": { do: "speed", factor: SPEEDS[Math.min(at + 1, SPEEDS.length - 1)] }, "-": { do: "speed", factor: SPEEDS[Math.max(at - 1, 0)] },
  };
  const command = commands[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (command) send(command);
  else if (event.key.toLowerCase() === "t") tour.start();
  else if (event.key === "?") $("keys").click();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", key);

// Angry Birds: drag the bird and let go.
let pull = null;
function pixel(event, canvas) {
  const box = canvas.getBoundingClientRect();
  const scale = Math.min(box.width / 640, box.height / 480);
  return [(event.clientX - box.left - (box.width - 640 * scale) / 2) / scale, (event.clientY - box.top - (box.height - 480 * scale) / 2) / scale];
}
function slingshot(canvas) {
  const isOn = () => state.about?.method === "you" && state.about.domain === "angrybirds";
  canvas.addEventListener("pointerdown", (event) => {
    if (!isOn()) return;
    pull = pixel(event, canvas);
    canvas.setPointerCapture(event.pointerId);
    flash("adapting", "drag back, let go");
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!isOn() || !pull) return;
    const [x, y] = pixel(event, canvas);
    const [across, up] = [pull[0] - x, y - pull[1]];
    flash("adapting", `pull ${Math.round(Math.hypot(across, up))} pixels, ${Math.round((Math.atan2(up, across) * 180) / Math.PI)}°`);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!isOn() || !pull) return;
    const [x, y] = pixel(event, canvas);
    const isDrawn = Math.hypot(x - pull[0], y - pull[1]) > 4;
    pull = null;
    if (isDrawn) send({ do: "shoot", x, y });
  });
}
document.addEventListener("keyup", (event) => {
  const rest = ["COAST", "STAY"].map((name) => state.about?.actions.indexOf(name)).find((i) => i >= 0);
  if (ARROWS[event.key] && state.about?.method === "you" && rest !== undefined) send({ do: "act", action: rest });
});

function ready() {
  if (!$("frozen") || !$("returns")) return setTimeout(ready, 30);
  new MutationObserver(forgetColours).observe(document.body, { attributeFilter: ["class"] });
  slingshot($("adapting"));
  $("start-tour").addEventListener("click", () => tour.start());
  const clean = new URL(location.href);
  clean.searchParams.delete("token");
  history.replaceState(null, "", clean);
  curtain("Starting …");
  connect();
  const isFirst = !localStorage.getItem("toured") && !location.search;
  localStorage.setItem("toured", "yes");
  if (isFirst) tour.offer();
}
ready();
