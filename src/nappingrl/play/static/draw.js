// Shapes on a canvas: crisp at any size, in the colours of the theme.

const colours = new Map();

export function colour(name) {
  if (!colours.has(name)) {
    colours.set(name, getComputedStyle(document.body).getPropertyValue(`--${name}`).trim() || "#888");
  }
  return colours.get(name);
}

export function forgetColours() {
  colours.clear();
}

// A canvas with as many pixels as the screen shows; returns its context, scaled to CSS pixels.
export function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

// Shapes of the world, then the poses that are imagined, fainter the later they are.
export function paint(canvas, shapes, size, poses = []) {
  const { pen, width, height } = prepare(canvas);
  const scale = Math.min(width / size[0], height / size[1]);
  pen.translate((width - scale * size[0]) / 2, (height - scale * size[1]) / 2);
  pen.scale(scale, scale);
  pen.beginPath();
  pen.rect(0, 0, size[0], size[1]);
  pen.clip();
  trace(pen, shapes);
  poses.forEach((pose, i) => {
    pen.globalAlpha = 0.34 - (0.22 * i) / poses.length;
    trace(pen, pose);
  });
  pen.globalAlpha = 1;
}

function trace(pen, shapes) {
  for (const [kind, name, ...rest] of shapes) {
    pen.fillStyle = pen.strokeStyle = colour(name);
    pen.beginPath();
    if (kind === "polygon") {
      rest[0].forEach(([x, y]) => pen.lineTo(x, y));
      pen.fill();
    } else if (kind === "circle") {
      pen.arc(rest[0][0], rest[0][1], rest[1], 0, 2 * Math.PI);
      pen.fill();
    } else {
      pen.lineWidth = Math.max(rest[2], 1);
      pen.lineCap = rest[2] > 4 ? "round" : "butt";
      pen.moveTo(...rest[0]);
      pen.lineTo(...rest[1]);
      pen.stroke();
    }
  }
}

export async function paintImage(canvas, data) {
  const picture = await createImageBitmap(await (await fetch(`data:image/jpeg;base64,${data}`)).blob());
  const { pen, width, height } = prepare(canvas);
  const scale = Math.min(width / picture.width, height / picture.height);
  const [w, h] = [picture.width * scale, picture.height * scale];
  pen.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);
  picture.close();
}
