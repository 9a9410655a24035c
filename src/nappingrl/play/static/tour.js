// A tour of six steps: each waits until the match shows what it is about.

const REVERSED = { "action-remap[0]": 1, "action-remap[1]": 0 };
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

// The latest returns of a pane in a changed world.
const changed = (state, i) => state.returns[i].filter((e) => e[2] > 0).map((e) => e[1]);

const STEPS = [
  {
    title: "A trained agent works",
    text: () => "Both panes show the same agent, trained to balance the pole. Left it is frozen; right a method watches over it. In the world it was trained in, both stand.",
    enter: (send) => send({ do: "begin", domain: "cartpole", method: "auto" }),
    ready: (state) => state.about?.domain === "cartpole" && !Object.keys(state.frame?.changes ?? { x: 1 }).length && state.frame.panes[0].step > 30,
    lit: "pane-frozen",
  },
  {
    title: "The world changes",
    text: (state) => `The controls are now reversed: LEFT pushes right, RIGHT pushes left. The agents are not told.`,
    enter: (send) => send({ do: "change", changes: REVERSED }),
    ready: (state) => Object.keys(state.frame?.changes ?? {}).length > 0,
    lit: "changed",
  },
  {
    title: "The frozen agent fails",
    text: (state) => `It does what it always did, and falls${changed(state, 0).length ? `: returns of ${changed(state, 0).slice(-3).join(", ")}` : ""}.`,
    ready: (state) => changed(state, 0).length >= 3,
    lit: "pane-frozen",
  },
  {
    title: "The change is noticed",
    text: (state) => state.facts?.alarm ? `Steps no longer lead where the agent's experience predicts. The detector raised an alarm after ${state.facts.alarm.after} step${state.facts.alarm.after === 1 ? "" : "s"}: ${state.facts.alarm.why || "returns fell"}.` : "The detector compares each step with what it learned before …",
    ready: (state) => Boolean(state.facts?.alarm),
    lit: "gauge",
  },
  {
    title: "The agent adapts",
    text: (state) => changed(state, 1).length > 1 ? `Same network, same weights; yet it stands again: a return of ${changed(state, 1).at(-1)} against ${changed(state, 0).at(-1)} on the left.` : "It tries what explains the new world …",
    ready: (state) => changed(state, 1).length > 1 && Math.max(...changed(state, 1)) > mean(changed(state, 0)) + 20,
    lit: "pane-adapting",
  },
  {
    title: "The rule it learned",
    text: (state) => `What it does instead can be read: “${state.facts?.rule || "…"}”. Now it is yours: move a slider, or try “Surprise me”.`,
    ready: (state) => Boolean(state.facts?.rule),
    lit: "rule",
  },
];

export class Tour {
  constructor(send, state) {
    Object.assign(this, { send, state, step: -1 });
  }

  start() {
    this.go(0);
  }

  // For the first visit: a question that waits, and takes no key.
  offer() {
    const box = document.getElementById("tour");
    box.hidden = false;
    box.innerHTML = `<h2>New here?</h2><p>See in six steps how a trained agent notices that its world has changed, and adapts.</p><div class="row"><button class="quiet" id="tour-end">Not now</button><button id="tour-next">Start the tour</button></div>`;
    document.getElementById("tour-end").onclick = () => (box.hidden = true);
    document.getElementById("tour-next").onclick = () => this.start();
  }

  go(step) {
    document.querySelectorAll(".lit").forEach((element) => element.classList.remove("lit"));
    const box = document.getElementById("tour");
    this.step = step < STEPS.length ? step : -1;
    box.hidden = this.step < 0;
    if (this.step < 0) return;
    const { title, enter, lit } = STEPS[step];
    enter?.(this.send);
    box.innerHTML = `<h2></h2><p></p><div class="row"><button class="quiet" id="tour-end">End the tour</button><span>${step + 1} of ${STEPS.length}</span><button id="tour-next">${step + 1 < STEPS.length ? "Next" : "Done"}</button></div>`;
    box.querySelector("h2").textContent = title;
    document.getElementById("tour-end").onclick = () => this.go(STEPS.length);
    document.getElementById("tour-next").onclick = () => this.go(this.step + 1);
    document.getElementById(lit)?.classList.add("lit");
    this.look();
    document.getElementById("tour-next").focus();
  }

  look() {
    if (this.step < 0) return;
    const { text, ready } = STEPS[this.step];
    const box = document.getElementById("tour");
    const said = text(this.state);
    if (box.querySelector("p").textContent !== said) box.querySelector("p").textContent = said;
    const next = document.getElementById("tour-next");
    const was = next.disabled;
    next.disabled = !ready(this.state);
    if (was && !next.disabled) next.focus();
  }
}
