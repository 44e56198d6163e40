// Expressions in x and y: their derivatives and kernel, the landscape of their squares, and a path to a minimum.
import { load } from "./lockstep/lockstep.js";
import { minimise, residualsOf } from "./minimise.js";
import { onScheme } from "./field_view.js";
import { at, say } from "./page.js";
import { sketch } from "./sketch.js";

const examples = [
  ["Rosenbrock's valley", "10*(y - x^2)\n1 - x"],
  ["Two circles", "hypot(x + 1, y) - 1.5\nhypot(x - 1, y - 0.5) - 1.2"],
  ["Waves", "sin(2*x) + y/2\ncos(y) - x/3"],
  ["Three distances", "hypot(x - 2, y - 1) - 1\nhypot(x + 1, y - 2) - 3\nhypot(x, y + 2) - 3.5"],
];
const reach = 3, cells = 160;
let lockstep, residuals, residual, landscape, start = [-1.5, 2], drawing = 0;

const digits = (value) => (Number.isFinite(value) ? value.toPrecision(6) : String(value));
const place = (k) => ((k + 0.5) / cells * 2 - 1) * reach;

/** Colour of a sum of squares, by its logarithm. */
function shade(cost) {
  const t = Number.isFinite(cost) ? Math.min(Math.max((Math.log10(cost + 1e-4) + 4) / 7, 0), 1) : 1;
  const band = Math.floor(t * 24) % 2 ? 0 : 10;
  return [20 + 200 * t + band, 90 + 130 * t + band, 110 + 60 * t + band];
}

/** The sum of squares at all cells, by one launch. */
async function computeLandscape() {
  const xs = Float64Array.from({ length: cells * cells }, (_, k) => place(k % cells));
  const ys = Float64Array.from({ length: cells * cells }, (_, k) => -place(Math.floor(k / cells)));
  const rows = await residual.at([xs, ys]);
  const image = new ImageData(cells, cells);
  for (let k = 0; k < cells * cells; ++k) {
    let cost = 0;
    for (let r = 0; r < residual.values.length; ++r) cost += rows[r][k] ** 2;
    image.data.set([...shade(cost), 255], 4 * k);
  }
  return createImageBitmap(image);
}

function drawPath(path) {
  const context = at("plane").getContext("2d");
  const { width } = at("plane");
  context.imageSmoothingEnabled = true;
  context.drawImage(landscape, 0, 0, width, width);
  const to = ([x, y]) => [(x / reach + 1) / 2 * width, (1 - (y / reach + 1) / 2) * width];
  context.strokeStyle = "#fff";
  context.lineWidth = 3;
  context.beginPath();
  path.forEach(({ point }, k) => context[k ? "lineTo" : "moveTo"](...to(point)));
  context.stroke();
  path.forEach(({ point }, k) => {
    const radius = k === 0 || k === path.length - 1 ? 9 : 4;
    context.fillStyle = k === 0 ? "#ffd34d" : "#fff";
    context.beginPath();
    context.arc(...to(point), radius, 0, 7);
    context.fill();
  });
}

function fillTable(rows) {
  at("rows").replaceChildren(...residual.values.map((text, r) => {
    const line = document.createElement("tr");
    for (const cellText of [text, digits(rows[r][0]), ...residual.derivatives[r]]) {
      const cell = document.createElement("td"), code = document.createElement("code");
      code.textContent = cellText;
      cell.append(code);
      line.append(cell);
    }
    return line;
  }));
}

/** A tree as lines, operands below their operation. */
function linesOf(tree) {
  if (!Array.isArray(tree)) return [String(tree)];
  const [operation, ...operands] = tree;
  return [operation, ...operands.flatMap((operand, k) => {
    const [corner, side] = k + 1 < operands.length ? ["├ ", "│ "] : ["└ ", "  "];
    return linesOf(operand).map((line, l) => (l ? side : corner) + line);
  })];
}

/** Everything that depends on the start. Only the newest call draws. */
async function update() {
  const mine = ++drawing;
  const path = await minimise(residual, start);
  const rows = await residual.at(start.map((value) => [value]));
  if (mine !== drawing) return;
  drawPath(path);
  fillTable(rows);
  const end = path.at(-1);
  at("minimum").textContent = `From (${start.map(digits).join(", ")}): ${path.length - 1} steps to (${end.point.map(digits).join(", ")}), sum of squares ${digits(end.cost)}.`;
}

async function read() {
  const lines = at("text").value.split("\n").map((line) => line.trim()).filter(Boolean);
  try {
    if (lines.length < 1 || lines.length > 4) throw new Error("One to four expressions, one a line.");
    const next = await residualsOf(lockstep, ["x", "y"], [lines]);
    residuals?.dispose();
    residuals = next;
    [residual] = next.all;
  } catch (error) {
    say(error.message, "bad");
    return;
  }
  landscape = await computeLandscape();
  at("graph").textContent = residual.trees.map((tree) => linesOf(tree).join("\n")).join("\n\n");
  at("kernel").textContent = residual.kernel.source();
  say("Drag the yellow point.", "good");
  await update();
}

function move(x, y) {
  start = [x, y].map((value) => Math.min(Math.max(value, -reach), reach));
  update();
}
function watch() {
  const plane = at("plane");
  let dragging = false;
  const follow = (event) => {
    const box = plane.getBoundingClientRect();
    move(((event.clientX - box.left) / box.width * 2 - 1) * reach, (1 - (event.clientY - box.top) / box.height * 2) * reach);
  };
  plane.addEventListener("pointerdown", (event) => {
    dragging = true;
    plane.setPointerCapture(event.pointerId);
    follow(event);
  });
  plane.addEventListener("pointermove", (event) => dragging && follow(event));
  plane.addEventListener("pointerup", () => { dragging = false; });
  plane.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(start[0] + step[0], start[1] + step[1]);
  });
  at("text").addEventListener("input", read);
  at("example").addEventListener("change", () => {
    at("text").value = examples[at("example").selectedIndex][1];
    read();
  });
}

async function main() {
  for (const [name] of examples) at("example").append(new Option(name));
  at("text").value = examples[0][1];
  lockstep = await load();
  watch();
  await read();
  const drawing = sketch(lockstep);
  onScheme(drawing.draw);
  await drawing.read();
  performance.mark("ready");
}

main().catch((error) => say(`This page cannot run here: ${error.message}`, "bad"));
