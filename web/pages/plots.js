// Lines on a canvas.
import { color } from "./page.js";

const text = (number) => (number === 0 || (Math.abs(number) >= 0.01 && Math.abs(number) < 1e4) ? number.toPrecision(3) : number.toExponential(1));

/** Points [x, y], joined; `x` and `y` scale the axes (Math.log10). `guide`: a slope on those axes, drawn dashed through the point
 * `through`, with its name. */
export function plot(canvas, points, { label, x = Number, y = Number, ends, guide }) {
  const context = canvas.getContext("2d"), { width, height } = canvas;
  context.fillStyle = color("--ground");
  context.fillRect(0, 0, width, height);
  context.fillStyle = color("--quiet");
  context.font = "12px system-ui, sans-serif";
  context.fillText(label, 8, 16);
  const all = points.map((p) => [x(p[0]), y(p[1]), p]).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
  if (all.length < 2) return;
  const lows = [Infinity, Infinity], highs = [-Infinity, -Infinity];
  for (const p of all) for (const k of [0, 1]) [lows[k], highs[k]] = [Math.min(lows[k], p[k]), Math.max(highs[k], p[k])];
  for (const k of [0, 1]) highs[k] = Math.max(highs[k], lows[k] + 1e-9);
  const px = (a) => 8 + ((width - 16) * (a - lows[0])) / (highs[0] - lows[0]), py = (b) => 36 + ((height - 56) * (highs[1] - b)) / (highs[1] - lows[1]);
  const line = (style, dash, places) => {
    context.strokeStyle = style;
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    for (const [a, b] of places) context.lineTo(px(a), py(b));
    context.stroke();
    context.setLineDash([]);
  };
  line(color("--accent"), [], all);
  if (guide) {
    const [a, b] = all[Math.min(guide.through, all.length - 1)], at = (c) => b + 0.5 + guide.slope * (c - a);
    context.save();
    context.beginPath();
    context.rect(0, 22, width, height);
    context.clip();
    line(color("--quiet"), [5, 4], [[a, at(a)], [highs[0], at(highs[0])]]);
    context.restore();
    context.fillText(guide.name, Math.min(px(a) + 6, width - 30), Math.max(py(at(a)) - 4, 30));
  }
  if (!ends) return;
  const first = text(all[0][2][1]), final = text(all.at(-1)[2][1]);
  context.fillText(first, 8, 32);
  context.fillText(final, width - 8 - context.measureText(final).width, height - 6);
}
