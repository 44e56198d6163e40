// A sketch of points: expressions in their coordinates that should be zero, and a point that is dragged while the others follow.
import { minimise, residualsOf } from "./minimise.js";
import { at, color, place } from "./page.js";

const examples = [
  ["Four bars", "ax + 2\nay\ndx - 1.5\ndy\nhypot(bx - ax, by - ay) - 1.4\nhypot(cx - bx, cy - by) - 3\nhypot(dx - cx, dy - cy) - 2"],
  ["A rectangle, 3 wide", "ay - by\ndx - ax\nbx - cx\ncy - dy\nhypot(bx - ax, by - ay) - 3"],
  ["A chain", "ax\nay - 2.5\nhypot(bx - ax, by - ay) - 1\nhypot(cx - bx, cy - by) - 1\nhypot(dx - cx, dy - cy) - 1\nhypot(ex - dx, ey - dy) - 1"],
  ["A point on a circle", "ax\nay\nhypot(bx - ax, by - ay) - 2\n(cx - ax)*(by - ay) - (cy - ay)*(bx - ax)\nhypot(cx - ax, cy - ay) - 1"],
];
const reach = 4, most = 10, pull = 0.1;  // pull: weight of the dragged place, so that the expressions count more

/** Names of the points whose coordinates a text has: "a" for ax and ay. */
const pointsIn = (text) => [...new Set([...text.matchAll(/\b([a-z])[xy]\b/g)].map(([, name]) => name))].sort();

/** Shows the sketch of the page. */
export function sketch(lockstep) {
  const canvas = at("sketch");
  // residuals: of the text alone, then with each point pulled to a place.
  let names = [], bars = [], state = [], residuals, chosen = 0, dragging = false, target, running = false;

  const linesOf = () => at("sketched").value.split("\n").map((line) => line.trim()).filter(Boolean);
  const note = (text, kind = "") => {
    at("sketch-note").textContent = text;
    at("sketch-note").className = `verdict ${kind}`;
  };

  function draw() {
    const context = canvas.getContext("2d"), { width, height } = canvas;
    const to = (k) => [((state[2 * k] / reach + 1) / 2) * width, ((1 - state[2 * k + 1] / reach) / 2) * height];
    context.fillStyle = color("--ground");
    context.fillRect(0, 0, width, height);
    context.strokeStyle = color("--quiet");
    context.lineWidth = 4;
    for (const [a, b] of bars) {
      context.beginPath();
      context.moveTo(...to(a));
      context.lineTo(...to(b));
      context.stroke();
    }
    context.font = "16px system-ui, sans-serif";
    names.forEach((name, k) => {
      const [x, y] = to(k);
      context.fillStyle = color(k === chosen ? "--bad" : "--accent");
      context.beginPath();
      context.arc(x, y, 9, 0, 7);
      context.fill();
      context.fillStyle = color("--text");
      context.fillText(name, x + 13, y - 9);
    });
    at("points").textContent = names.map((name, k) => `${name} (${state[2 * k].toFixed(3)}, ${state[2 * k + 1].toFixed(3)})`).join(", ");
  }
  /** Where the points go that satisfy the expressions, with the chosen one near its target while there is one. One at a time. */
  async function follow() {
    if (running) return;
    running = true;
    try {
      for (let seen; seen !== target || !seen; ) {
        seen = target;
        const path = await minimise(residuals.all[seen ? chosen + 1 : 0], [...state, ...(seen ?? [0, 0])], { free: state.length, mostSteps: 30 });
        state = path.at(-1).point.slice(0, state.length);
        draw();
        const off = Math.max(...path.at(-1).values.slice(0, residuals.all[0].values.length).map(Math.abs));
        note(off < 1e-6 || seen ? "Drag a point." : `No places of the points make all expressions zero: the worst is ${off.toPrecision(3)}.`, off < 1e-6 ? "good" : "");
        if (!seen) break;
      }
    } catch (error) {
      note(error.message, "bad");
    }
    running = false;
  }
  async function read() {
    const lines = linesOf(), next = pointsIn(lines.join("\n"));
    try {
      if (next.length < 1 || next.length > most) throw new Error(`One to ${most} points: coordinates are named ax, ay, bx, by …`);
      const made = await residualsOf(lockstep, [...next.flatMap((name) => [`${name}x`, `${name}y`]), "toX", "toY"],
        [lines, ...next.map((name) => [...lines, `${pull}*(${name}x - toX)`, `${pull}*(${name}y - toY)`])]);
      residuals?.dispose();
      residuals = made;
    } catch (error) {
      return note(error.message.replace(", toX, toY", ""), "bad");
    }
    // Points that were there stay; the others begin on a circle.
    state = next.flatMap((name, k) => {
      const old = names.indexOf(name), turn = (2 * Math.PI * k) / next.length + 2;
      return old >= 0 ? state.slice(2 * old, 2 * old + 2) : [2 * Math.cos(turn), 2 * Math.sin(turn)];
    });
    names = next;
    bars = lines.map((line) => pointsIn(line).map((name) => names.indexOf(name))).filter((of) => of.length === 2);
    [chosen, target] = [Math.min(chosen, names.length - 1), undefined];
    await follow();
  }

  const placeOf = (event) => {
    const [x, y] = place(canvas, event);
    return [((x / canvas.width) * 2 - 1) * reach, (1 - (y / canvas.height) * 2) * reach];
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = placeOf(event), far = names.map((_, k) => Math.hypot(state[2 * k] - x, state[2 * k + 1] - y));
    chosen = far.indexOf(Math.min(...far));
    [dragging, target] = [true, [x, y]];
    canvas.setPointerCapture(event.pointerId);
    follow();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragging) return;
    target = placeOf(event);
    follow();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => {
    [dragging, target] = [false, undefined];
    follow();
  });
  canvas.addEventListener("keydown", async (event) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!step && event.key !== "Enter") return;
    event.preventDefault();
    if (!step) {
      chosen = (chosen + 1) % names.length;
      return draw();
    }
    target = step.map((d, k) => state[2 * chosen + k] + d);
    await follow();
    target = undefined;
    await follow();
  });
  at("sketched").addEventListener("input", read);
  for (const [name] of examples) at("sketch-example").append(new Option(name));
  at("sketch-example").addEventListener("change", () => {
    [at("sketched").value, names, state, chosen] = [examples[at("sketch-example").selectedIndex][1], [], [], 0];
    read();
  });
  at("sketched").value = examples[0][1];
  return { read, draw };
}
