// A triangle mesh on a canvas: seen from a direction that turns, lit from the viewer, picked by a pointer.
import { color } from "./page.js";

const shades = Array.from({ length: 33 }, (_, k) => `hsl(163 35% ${18 + 2 * k}%)`);

export class MeshView {
  turn = 0.6;
  tilt = 0.35;
  zoom = 1;
  handles = [];
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  /** A mesh with its middle and size, by which it fills the picture. */
  show(positions, faces) {
    this.faces = faces;
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (let k = 0; k < positions.length; ++k) {
      low[k % 3] = Math.min(low[k % 3], positions[k]);
      high[k % 3] = Math.max(high[k % 3], positions[k]);
    }
    this.middle = low.map((l, a) => (l + high[a]) / 2);
    this.size = Math.max(Math.hypot(...low.map((l, a) => high[a] - l)), 1e-30);
    this.draw(positions);
  }
  /** Axes of the picture in space: right, up, towards the viewer. */
  axes() {
    const [s, c, t, u] = [Math.sin(this.turn), Math.cos(this.turn), Math.sin(this.tilt), Math.cos(this.tilt)];
    return [[c, 0, -s], [-s * t, u, -c * t], [s * u, t, c * u]];
  }
  scale() {
    return (this.zoom * Math.min(this.canvas.width, this.canvas.height)) / this.size;
  }
  draw(positions) {
    this.positions = positions;
    const { canvas, context, faces, middle } = this, axes = this.axes(), scale = this.scale(), count = positions.length / 3;
    const x = new Float32Array(count), y = new Float32Array(count), z = new Float32Array(count);
    for (let v = 0; v < count; ++v) {
      const p = [positions[3 * v] - middle[0], positions[3 * v + 1] - middle[1], positions[3 * v + 2] - middle[2]];
      const [a, b, c] = axes.map((axis) => axis[0] * p[0] + axis[1] * p[1] + axis[2] * p[2]);
      x[v] = canvas.width / 2 + scale * a;
      y[v] = canvas.height / 2 - scale * b;
      z[v] = scale * c;
    }
    this.seen = { x, y, z };
    const depth = new Float32Array(faces.length / 3);
    for (let f = 0; f < depth.length; ++f) depth[f] = z[faces[3 * f]] + z[faces[3 * f + 1]] + z[faces[3 * f + 2]];
    const order = Uint32Array.from(depth, (_, f) => f).sort((a, b) => depth[a] - depth[b]);
    context.fillStyle = color("--ground");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.lineWidth = 0.5;
    for (const f of order) {
      const [i, j, k] = [faces[3 * f], faces[3 * f + 1], faces[3 * f + 2]];
      const ax = x[j] - x[i], ay = y[j] - y[i], az = z[j] - z[i], bx = x[k] - x[i], by = y[k] - y[i], bz = z[k] - z[i];
      const nx = ay * bz - az * by, ny = az * bx - ax * bz, nz = ax * by - ay * bx;
      const light = Math.abs(nz) / (Math.hypot(nx, ny, nz) || 1);
      context.fillStyle = context.strokeStyle = shades[Math.round(32 * Math.min(Math.max(light, 0), 1)) || 0];
      context.beginPath();
      context.moveTo(x[i], y[i]);
      context.lineTo(x[j], y[j]);
      context.lineTo(x[k], y[k]);
      context.closePath();
      context.fill();
      context.stroke();
    }
    for (const v of this.handles) {
      context.beginPath();
      context.arc(x[v], y[v], 6, 0, 7);
      context.fillStyle = color("--bad");
      context.fill();
    }
  }

  /** The vertex nearest to the viewer close to a place of the picture, or -1. */
  pick([px, py], reach = 18) {
    const { x, y, z } = this.seen;
    let best = -1;
    for (let v = 0; v < x.length; ++v)
      if (Math.hypot(x[v] - px, y[v] - py) < reach && (best < 0 || z[v] > z[best] + reach)) best = v;
    return best;
  }
  /** A step across the picture as one in space. */
  step(dx, dy) {
    const [right, up] = this.axes(), scale = this.scale();
    return right.map((r, a) => (r * dx - up[a] * dy) / scale);
  }
}
