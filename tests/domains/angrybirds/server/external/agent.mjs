// An agent for Node that speaks the protocol by itself: it aims at the first pig by the formula of a throw.
// node agent.mjs PORT
import net from "node:net";

const [PLAYING, LIKELIHOOD, TERMINATED] = [5, 12, 13];
const GRAVITY = 4.7088, SPEED = 10, SLING_HEIGHT = 2.055, PIG_COLOUR = 125;

const socket = net.connect(Number(process.argv[2]), "127.0.0.1");
let buffer = Buffer.alloc(0);
let wake = () => {};
socket.on("data", (data) => { buffer = Buffer.concat([buffer, data]); wake(); });
socket.on("close", () => { if (!isDone) { console.error("the server hung up"); process.exit(1); } });
socket.setNoDelay(true);
let isDone = false;

async function read(n) {
  while (buffer.length < n) await new Promise((resolve) => { wake = resolve; });
  const data = buffer.subarray(0, n);
  buffer = buffer.subarray(n);
  return data;
}

function send(code, ...words) {
  const data = Buffer.alloc(1 + 4 * words.length);
  data.writeUInt8(code, 0);
  words.forEach((word, i) => data.writeInt32BE(word, 1 + 4 * i));
  socket.write(data);
}

async function ask(code, n, ...words) {
  send(code, ...words);
  return read(n);
}

async function truth() {
  const n = (await ask(64, 4)).readUInt32BE(0);
  const text = (await read(n)).toString("utf8");
  return JSON.parse(text)[0].features;
}

function middle(feature) {
  const ring = feature.geometry.coordinates[0];
  return [0, 1].map((axis) => ring.reduce((sum, point) => sum + point[axis], 0) / ring.length);
}

function colourShare(feature, colour) {
  return feature.properties.colormap.filter((one) => one.color === colour).reduce((sum, one) => sum + one.percent, 0);
}

function aim(features) {
  const sling = features.find((one) => one.properties.label === "Slingshot").geometry.coordinates[0];
  const [left, right] = [Math.min(...sling.map((p) => p[0])), Math.max(...sling.map((p) => p[0]))];
  const [top, bottom] = [Math.min(...sling.map((p) => p[1])), Math.max(...sling.map((p) => p[1]))];
  const scale = (bottom - top) / SLING_HEIGHT;
  const [x0, y0] = [(left + right) / 2, top + 0.25 * scale];
  const pigs = features.filter((one) => one.geometry.type === "Polygon" && colourShare(one, PIG_COLOUR) > 0.2);
  let angle = Math.PI / 4;
  if (pigs.length) {
    const [px, py] = middle(pigs[0]);
    for (let i = 0; i < 20; i++) { // the bird starts from where it is drawn to, a unit behind the sling
      const [x, y] = [(px - x0) / scale + Math.cos(angle), (y0 - py) / scale + Math.sin(angle)];
      const root = SPEED ** 4 - GRAVITY * (GRAVITY * x * x + 2 * y * SPEED * SPEED);
      angle = root < 0 ? Math.PI / 4 : Math.atan((SPEED * SPEED - Math.sqrt(root)) / (GRAVITY * x));
    }
  }
  return [Math.round(x0 - 150 * Math.cos(angle)), Math.round(y0 + 150 * Math.sin(angle))];
}

async function likelihood() {
  const data = Buffer.alloc(1 + 4 * 5);
  data.writeUInt8(66, 0);
  data.writeFloatBE(0.5, 1);
  data.writeFloatBE(0.5, 5);
  socket.write(data); // no objects, level 0, no text
  await read(1);
}

async function play() {
  const configure = Buffer.from([1, 0, 0, 0, 77, 1]);
  socket.write(configure);
  await read(3);
  for (;;) {
    const state = (await ask(12, 1))[0];
    if (state === TERMINATED) break;
    else if (state >= 8 && state <= 11) await ask(68, 19);
    else if (state === LIKELIHOOD) await likelihood();
    else if (state === PLAYING) await ask(31, 1, ...aim(await truth()), 0, 0);
    else {
      const level = (await ask(53, 4)).readUInt32BE(0);
      console.log(`level ${level}`);
    }
  }
  isDone = true;
  socket.end();
  console.log("done");
}

play();
