// Reads meshes, minimises their energies while they are pulled at, and shows every state.
import { load } from "./lockstep/lockstep.js";
import { onScheme } from "./field_view.js";
import { examples } from "./mesh_examples.js";
import { MeshView } from "./mesh_view.js";
import { at, calm, download, fallbackText, place, say, takeFiles } from "./page.js";
import { plot } from "./plots.js";

const energies = { arap: "as rigid as possible: every star keeps its shape", springs: "springs: every edge keeps its length",
  bend: "springs, and bending to flatness", smooth: "smoothness, near to where it was", developable: "developability: bends like paper" };

const view = new MeshView(at("view"));
let lockstep, mesh, boundary, positions, held, targets, problem;
let running = false, ends = false, stale = true, moved = 0, costs = [], fallbacks = {};

const plotCosts = () => plot(at("plot"), costs, { label: "cost by iteration", x: (n) => Math.log10(n + 1), y: Math.log10, ends: true });
/** Vertices of edges that have one triangle. */
function boundaryOf({ faces }) {
  const seen = new Map();
  for (let k = 0; k < faces.length; ++k) {
    const a = faces[k], b = faces[k % 3 === 2 ? k - 2 : k + 1], key = a < b ? `${a} ${b}` : `${b} ${a}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  return [...new Set([...seen].filter(([, times]) => times === 1).flatMap(([key]) => key.split(" ").map(Number)))].sort((a, b) => a - b);
}
const point = (all, v) => [all[3 * v], all[3 * v + 1], all[3 * v + 2]];

function begin() {
  positions = mesh.positions.slice();
  [view.handles, targets, held] = [[], [], at("energy").value === "arap" ? [] : boundary];
  [stale, costs, fallbacks] = [true, [], {}];
  view.show(positions, mesh.faces);
  plotCosts();
  at("release").disabled = at("save").disabled = at("run").disabled = false;
  at("numbers").textContent = at("notes").textContent = "";
}
async function stop() {
  ends = true;
  problem?.stop();
  while (running) await new Promise((go) => setTimeout(go, 5));
}
/** Reads a mesh; what is wrong with it is a sentence, and the mesh before it stays. */
async function open(bytes, name) {
  await stop();
  const next = lockstep.mesh(bytes, name);
  problem?.dispose();
  mesh?.dispose();
  [mesh, problem, boundary] = [next, undefined, boundaryOf(next)];
  begin();
  const { vertices, triangles, repaired } = mesh.counts;
  const changes = Object.entries(repaired).filter(([, n]) => n > 0).map(([what, n]) => `${n} ${what}`).join(", ");
  say(`${name}: ${vertices.toLocaleString("en")} vertices, ${triangles.toLocaleString("en")} triangles${changes ? ` (repaired: ${changes})` : ""}. Pull at the surface.`);
}
function numbers(iterations, seconds, device) {
  at("numbers").textContent = `${costs.length} states, ${(iterations / Math.max(seconds, 1e-9)).toFixed(0)} iterations a second on ${device}. ${fallbackText(fallbacks)}`;
}

async function minimise() {
  if (running || !mesh) return;
  [running, ends] = [true, false];
  at("run").textContent = "Stop";
  try {
    while (!ends) {
      if (stale) {
        problem?.dispose();
        problem = undefined;
        problem = await lockstep.meshProblem(mesh, { energy: at("energy").value, device: at("device").value, fixed: held, handles: view.handles, start: positions });
        stale = false;
      }
      const version = moved, before = performance.now();
      let seen = 0, drawn = 0;
      const result = await problem.minimise({
        targets,
        onFrame(state) {
          positions = state.positions;
          costs.push([state.iterations, state.cost]);
          seen = seen || state.iterations;
          if (performance.now() - drawn > (calm.matches ? 500 : 0)) {
            view.draw(positions);
            plotCosts();
            numbers(state.iterations - seen + 1, (performance.now() - before) / 1000, problem.device);
            drawn = performance.now();
          }
          return !ends && !stale && version === moved;
        },
      });
      positions = result.positions;
      costs.push([result.total, result.cost]);
      for (const [stage, n] of Object.entries(result.fallbacks)) fallbacks[stage] = n;
      for (const line of result.notes) at("notes").textContent = line;
      view.draw(positions);
      plotCosts();
      numbers(result.iterations, result.seconds, result.device);
      if (result.termination !== "stopped" && !stale && version === moved) {
        say(`Done after ${result.total} iterations: cost ${result.cost.toPrecision(4)}, ${result.termination.replace("_", " ")}.`, "good");
        break;
      }
      await new Promise((go) => setTimeout(go, 0));
    }
  } catch (error) {
    problem = undefined;
    stale = true;
    say(error.message, "bad");
  }
  running = false;
  at("run").textContent = "Minimise";
}

/** Vertices of the far end, held so that there is something to pull against. */
function farEnd(v) {
  const from = point(positions, v), far = Array.from({ length: mesh.counts.vertices }, (_, k) => [Math.hypot(...point(positions, k).map((x, a) => x - from[a])), k]);
  return far.sort((a, b) => b[0] - a[0]).slice(0, Math.max(3, Math.round(far.length / 20))).map(([, k]) => k).sort((a, b) => a - b);
}
function grab(v) {
  if (!view.handles.includes(v)) {
    if (view.handles.length === 0 && held.length === 0) held = farEnd(v);
    held = held.filter((other) => other !== v);
    view.handles.push(v);
    targets.push(...point(positions, v));
    stale = true;
  }
  return view.handles.indexOf(v);
}
function pull(handle, step) {
  for (let a = 0; a < 3; ++a) targets[3 * handle + a] += step[a];
  ++moved;
  minimise();
}

function listen() {
  const canvas = at("view");
  let last, handle = -1;
  canvas.addEventListener("pointerdown", (event) => {
    if (!mesh) return;
    canvas.setPointerCapture(event.pointerId);
    last = place(canvas, event);
    const v = view.pick(last);
    handle = v < 0 ? -1 : grab(v);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    const now = place(canvas, event), dx = now[0] - last[0], dy = now[1] - last[1];
    last = now;
    if (handle >= 0) return pull(handle, view.step(dx, dy));
    view.turn -= dx / 150;
    view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + dy / 150));
    view.draw(positions);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { last = undefined; });
  canvas.addEventListener("keydown", (event) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    const zoom = { "+": 1.1, "-": 1 / 1.1 }[event.key];
    if (!mesh || (!dx && !dy && !zoom)) return;
    event.preventDefault();
    if (event.shiftKey && !zoom) {
      if (view.handles.length === 0) grab(view.pick([canvas.width / 2, canvas.height / 2], canvas.width));
      return pull(view.handles.length - 1, view.step(12 * dx, 12 * dy));
    }
    view.turn -= dx / 10;
    view.tilt = Math.max(-1.5, Math.min(1.5, view.tilt + dy / 10));
    view.zoom *= zoom ?? 1;
    view.draw(positions);
  });
  at("run").addEventListener("click", () => (running ? stop() : minimise()));
  at("release").addEventListener("click", async () => {
    await stop();
    begin();
    say("Pull at the surface.");
  });
  for (const id of ["energy", "device"]) at(id).addEventListener("change", async () => {
    await stop();
    begin();
  });
  at("save").addEventListener("click", () => {
    const lines = [];
    for (let k = 0; k < positions.length; k += 3) lines.push(`v ${positions[k]} ${positions[k + 1]} ${positions[k + 2]}\n`);
    for (let k = 0; k < mesh.faces.length; k += 3) lines.push(`f ${mesh.faces[k] + 1} ${mesh.faces[k + 1] + 1} ${mesh.faces[k + 2] + 1}\n`);
    download(mesh.name.replace(/\.\w+$/, "") + "_minimised.obj", lines, "model/obj");
  });
  takeFiles(at("file"), async ([file]) => open(await file.arrayBuffer(), file.name), { kinds: "a file that ends in .obj, .ply or .stl", most: 200e6 });
  onScheme(() => mesh && view.draw(positions));
}

async function main() {
  for (const name of Object.keys(examples)) at("example").append(new Option(name));
  for (const [energy, name] of Object.entries(energies)) at("energy").append(new Option(name, energy));
  const example = async () => {
    const [name, make] = examples[at("example").value];
    await open(make(), name);
  };
  at("example").addEventListener("change", example);
  lockstep = await load({ print: (line) => { at("notes").textContent = line; } });
  listen();
  await example();
  performance.mark("ready");
}

main().catch((error) => say(`This page cannot run here: ${error.message}`, "bad"));
