// Advances a flow, shows its vorticity, spectrum and energy, and lets it be stirred.
import { load } from "./lockstep/lockstep.js";
import { drawField, onScheme } from "./field_view.js";
import { alone, at, calm, color, download, fallbackText, lately, npyOf, place, say, takeFiles } from "./page.js";
import { plot } from "./plots.js";

const push = 30;  // speed that a stroke adds, for each length of the box that it is long
const frameMs = 40, mostSteps = 64;  // between two pictures
const choices = ["device", "points", "initial", "seed", "viscosity", "forcing", "amount", "drag", "closure"];  // also of the address
const view = at("view");
let lockstep, flow, running = false, loops = false, perFrame = 1, strokes = [], cursor = [0.5, 0.5];
let energies = [], spectrum = [], scale = 0, shown = 0, counted = 0, begun;  // begun: clock and steps of the run
let values, given;  // the field in the picture, a field that was dropped

/** Settings of the page as `lockstep flow run` has them. */
function settings() {
  const forcing = at("forcing").value, amount = 10 ** Number(at("amount").value);
  return {
    viscosity: 10 ** Number(at("viscosity").value), closure: at("closure").value, drag: Number(at("drag").value), cfl: 0.8,
    initial: at("initial").value, seed: Math.max(0, Math.trunc(Number(at("seed").value)) || 0), forcing,
    forcing_wavenumber: forcing === "none" ? null : 8, forcing_amount: forcing === "none" ? null : amount,
  };
}

function draw() {
  let square = 0;
  for (const w of values) square += w * w;
  const now = 3 * Math.sqrt(square / values.length);
  scale = scale ? scale + 0.1 * (now - scale) : now;
  drawField(view, values, flow.shape, { palette: "signed", low: -scale, high: scale, up: true });
  if (document.activeElement === view) {
    const context = view.getContext("2d"), [x, y] = [cursor[0] * view.width, (1 - cursor[1]) * view.height];
    context.strokeStyle = color("--text");
    context.strokeRect(x - view.width / 60, y - view.width / 60, view.width / 30, view.width / 30);
  }
  plot(at("spectrum"), spectrum, { label: "energy by wavenumber", x: Math.log10, y: Math.log10, guide: { slope: -3, through: 9, name: "slope −3" } });
  plot(at("energy"), energies, { label: "energy over time", ends: true });
}
/** The state after an advance: numbers at once, pictures as often as motion is wanted. */
async function show(state, always) {
  if (energies.length > 600) energies = energies.filter((_, k) => k % 2 === 0);
  energies.push([state.time, state.energy]);
  if (!always && performance.now() - shown < (calm.matches ? 500 : 0)) return;
  shown = performance.now();
  values = await flow.vorticity();
  if (always || shown - counted > 1000) {  // it costs as much as half a step
    counted = shown;
    spectrum = Array.from(await flow.spectrum(), (e, k) => [k, e]).slice(1, Math.floor(Math.min(...flow.shape) / 3));
  }
  draw();
  const rate = begun && state.steps > begun.steps ? `${((1000 * (state.steps - begun.steps)) / (performance.now() - begun.clock)).toPrecision(3)} steps a second` : "At rest";
  at("numbers").textContent = `${rate} on ${flow.device}: step ${state.steps}, time ${state.time.toFixed(3)}, energy ${state.energy.toPrecision(4)}, ` +
    `enstrophy ${state.enstrophy.toPrecision(4)}. ${fallbackText(flow.fallbacks)} ${Math.round(lockstep.usage().memoryBytes / 1e6)} MB.`;
  for (const line of flow.notes) at("notes").textContent = line;
}
const advance = (steps, always) => alone(async () => show(await flow.advance(steps, strokes.splice(0, 200)), always));

/** A flow of the page's settings, or of a field; the one before stays where that is not possible. */
const begin = () => alone(async () => {
  const n = Number(at("points").value);
  const next = await lockstep.flow({ ...settings(), device: at("device").value, ...(given ? { field: given } : { nx: n, ny: n }) });
  flow?.dispose();
  flow = next;
  [energies, strokes, scale, perFrame, begun] = [[], [], 0, 1, undefined];
  at("notes").textContent = "";
  await show(await flow.advance(0), true);
  for (const id of ["run", "step", "again", "png", "npy"]) at(id).disabled = false;
  say(`${given ? given.name : "The flow"}: ${flow.shape[0]} × ${flow.shape[1]} points. Stir it.`);
});
const begins = () => begin().catch((error) => say(error.message, "bad"));

function pause() {
  running = false;
}
/** Advances until it is paused; the button says "Run" when the last picture is there. */
async function run() {
  if (!flow) return;
  running = true;
  begun = undefined;
  at("run").textContent = "Pause";
  if (loops) return;
  loops = true;
  try {
    do {
      while (running) {
        const before = performance.now();
        await advance(perFrame, false);
        const took = performance.now() - before;
        begun ??= { clock: performance.now(), steps: await alone(async () => (await flow.advance(0)).steps) };
        if (took < frameMs / 2) perFrame = Math.min(2 * perFrame, mostSteps);
        else if (took > frameMs) perFrame = Math.max(1, perFrame >> 1);
        await new Promise((next) => requestAnimationFrame(next));
      }
      await advance(0, true);
    } while (running);
  } catch (error) {
    say(error.message, "bad");
  }
  running = loops = false;
  at("run").textContent = "Run";
}

/** Pushes at a place (shares of the box, y up) by a step. */
function stroke([x, y], dx, dy) {
  strokes.push([x, y, push * dx, push * dy]);
  if (!running) advance(1, true).catch((error) => say(error.message, "bad"));
}
function listen() {
  let last;
  const boxPlace = (event) => {
    const [x, y] = place(view, event);
    return [x / view.width, 1 - y / view.height];
  };
  view.addEventListener("pointerdown", (event) => {
    view.setPointerCapture(event.pointerId);
    last = boxPlace(event);
  });
  view.addEventListener("pointermove", (event) => {
    if (!last || !flow) return;
    const now = boxPlace(event), [dx, dy] = [now[0] - last[0], now[1] - last[1]];
    if (Math.hypot(dx, dy) < 0.004) return;
    last = now;
    stroke(now, dx, dy);
  });
  for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, () => { last = undefined; });
  view.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step || !flow) return;
    event.preventDefault();
    const [dx, dy] = step.map((d) => 0.03 * d);
    if (!event.shiftKey) return stroke(cursor, dx, dy);
    cursor = [(cursor[0] + dx + 1) % 1, (cursor[1] + dy + 1) % 1];
    draw();
  });
  for (const change of ["focus", "blur"]) view.addEventListener(change, () => flow && draw());
  at("run").addEventListener("click", () => (running ? pause() : run()));
  at("step").addEventListener("click", () => {
    pause();
    advance(1, true).catch((error) => say(error.message, "bad"));
  });
  at("again").addEventListener("click", begins);
  for (const id of ["initial", "seed", "points"]) at(id).addEventListener("change", () => {
    given = undefined;
    begins();
  });
  at("device").addEventListener("change", begins);
  const change = lately(() => flow.change(settings()));
  for (const id of ["viscosity", "forcing", "amount", "drag", "closure"]) at(id).addEventListener("input", () => flow && change().catch((error) => say(error.message, "bad")));
  at("png").addEventListener("click", () => view.toBlob((blob) => download("vorticity.png", blob)));
  at("npy").addEventListener("click", () => download("vorticity.npy", npyOf(values, flow.shape)));
  takeFiles(at("file"), async ([file]) => {
    const before = given;
    given = { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
    await begin().catch((error) => {
      given = before;
      throw error;
    });
  }, { kinds: "the .npy file of a vorticity, rows of numbers", most: 200e6 });
  onScheme(() => flow && draw());
}

async function main() {
  for (const [id, value] of new URLSearchParams(location.search)) if (choices.includes(id)) at(id).value = value;
  lockstep = await load({ print: (line) => { at("notes").textContent = line; } });
  listen();
  await begin();
  performance.mark("ready");
  if (!calm.matches) run();
}

main().catch((error) => say(`This page cannot run here: ${error.message}`, "bad"));
