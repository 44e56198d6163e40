// Shows a city: its shadows at a moment, its sky view factors while they are computed, and a day of warmth.
import { load } from "./lockstep/lockstep.js";
import { clearDay, daysOf, hoursOf, nearestDay } from "./city/day.js";
import { tiffOf } from "./city/geotiff.js";
import { placeOf } from "./city/places.js";
import { readRaster, roleOf } from "./city/rasters.js";
import { drawField, drawScale, onScheme } from "./field_view.js";
import { alone, at, calm, color, download, fallbackText, lately, npyOf, place, say, takeFiles } from "./page.js";

const layers = {
  shadow: { palette: "shade", unit: "", low: 0, high: 1, about: "1 is sun, 0.5 the shade of a plant, 0 the shade of a building or of the ground." },
  heights: { palette: "heights", unit: " m", about: "Heights of ground and buildings as the file has them." },
  svf: { palette: "share", unit: "", low: 0, high: 1, about: "Share of the sky that is seen from the ground, 0 to 1." },
  tmrt: { palette: "heat", unit: " °C", about: "The temperature of surroundings that would radiate as much to a person as sun, sky, ground and walls do." },
  utci: { palette: "heat", unit: " °C", about: "The air temperature of a reference climate that would feel the same. Above 26 °C is heat stress, above 46 °C extreme." },
};
const names = { dsm: "surface", dem: "bare ground", cdsm: "tree tops", tdsm: "tree trunks" };
const side = 48;  // pixels of a tile, between two pictures
const view = at("view");
let lockstep, city, files = {}, map = {}, weather;  // weather: name, text, and what lockstep.weather says; none for a clear day
let outlines, sky, series, shown, values, moment, mark, stops = false, busy = false;  // moment: date and time of the picture

const when = () => {
  const minutes = Number(at("time").value);
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
};
const spot = () => [Number(at("latitude").value), Number(at("longitude").value), Number(at("offset").value)];
const isSeries = (layer) => layer === "tmrt" || layer === "utci";
/** The hour of the series that holds the slider's time, or the last one. */
const stepOf = () => (series.times.findIndex((end) => end >= `${at("date").value}T${when()}`) + series.times.length) % series.times.length;

/** The sun on the grid of the city, and 1, 0.5 or 0 where it shines. */
async function shadowGrid() {
  const [latitude, longitude, offset] = spot(), sun = lockstep.sun(`${at("date").value}T${when()}`, latitude, longitude, offset);
  const said = () => {
    at("numbers").textContent = `Sun at ${sun.altitude.toFixed(1)}° above the horizon, ${sun.azimuth.toFixed(1)}° clockwise from north. Computed by ${city.device}. ${fallbackText(city.fallbacks)}`;
  };
  said();
  if (sun.altitude <= 0) return new Float32Array(city.rows * city.cols);
  const azimuth = (((sun.azimuth - (map.convergence ?? 0)) % 360) + 360) % 360;
  const { buildings, vegetation } = await city.shadows(azimuth, Math.min(sun.altitude, 90));
  said();
  return buildings.map((b, k) => (b === 0 ? 0 : vegetation[k] === 0 ? 0.5 : b));
}
/** 1 where a building begins: two metres or more between neighbours. */
async function outlinesOf(of) {
  const heights = await of.grid("dsm"), edges = new Uint8Array(heights.length), step = (a, b) => Math.abs(heights[a] - heights[b]) >= 2;
  for (let k = 0; k < heights.length; ++k) edges[k] = ((k + 1) % of.cols && step(k, k + 1)) || (k + of.cols < heights.length && step(k, k + of.cols)) ? 1 : 0;
  return edges;
}
/** The grid of a layer; undefined where it is not computed. */
async function gridOf(layer) {
  if (layer === "heights") return city.grid("dsm");
  if (layer === "shadow") return shadowGrid();
  if (layer === "svf") return sky && city.svf();
  return series && series.grid(layer, stepOf());
}

function rangeOf(layer) {
  if (layers[layer].low !== undefined) return [layers[layer].low, layers[layer].high];
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!isSeries(layer)) return low <= high ? [low, high] : [0, 1];
  return low <= high ? [5 * Math.floor(low / 5), 5 * Math.ceil(high / 5)] : [0, 50];
}
function draw() {
  const layer = shown, { palette, unit, about } = layers[layer], [low, high] = rangeOf(layer);
  drawField(view, values, [city.rows, city.cols], { palette, low, high, ink: outlines });
  drawScale(at("scale"), { palette, low, high, unit });
  at("range").textContent = `${low.toPrecision(3)} … ${high.toPrecision(3)}${unit}`;
  at("about").textContent = about;
  if (mark) {
    const context = view.getContext("2d"), reach = Math.max(2, view.width / 60);
    context.strokeStyle = color("--bad");
    context.lineWidth = Math.max(1, view.width / 300);
    context.strokeRect(mark[0] - reach + 0.5, mark[1] - reach + 0.5, 2 * reach, 2 * reach);
    tell(mark);
  }
}
function tell([col, row]) {
  const value = values[row * city.cols + col], { unit } = layers[shown], x = map.x ?? 0, y = map.y ?? city.rows * city.pixelSize;
  const where = `${(x + (col + 0.5) * city.pixelSize).toFixed(1)} m east, ${(y - (row + 0.5) * city.pixelSize).toFixed(1)} m north`;
  at("value").textContent = `${Number.isNaN(value) ? "No value" : `${value.toFixed(shown === "svf" ? 3 : 1)}${unit}`} at ${where} (row ${row}, column ${col}).`;
}
/** Shows the chosen layer, or says how to get it. */
async function present() {
  if (!city) return;
  const layer = at("layer").value, found = await gridOf(layer);
  if (!found) return say(layer === "svf" ? "Press “Compute the sky view” to see it grow." : "Press “Compute the day’s warmth” to see it.");
  [values, shown, moment] = [found, layer, isSeries(layer) ? series.times[stepOf()] : `${at("date").value}T${when()}`];
  draw();
  if (isSeries(layer)) at("numbers").textContent = `Hour that ends at ${moment.replace("T", " ")}, ${weather?.name ?? "a clear day"}. Computed by ${city.device}. ${fallbackText(city.fallbacks)}`;
  for (const line of city.notes) at("notes").textContent = line;
}
const show = () => alone(present), presently = lately(present);
const shows = () => presently().catch((error) => say(error.message, "bad"));

function ready() {
  for (const id of ["sky", "day", "png", "npy", "tif"]) at(id).disabled = busy;
  at("stop").disabled = !busy;
}
async function stop() {
  stops = true;
  while (busy) await new Promise((go) => setTimeout(go, 10));
}
/** Takes a new city with its files and map; those before stay where that is not possible. */
async function take(make, text, next) {
  await stop();
  const [made, edges] = await alone(async () => {
    const of = await make();
    return [of, await outlinesOf(of)];
  });
  city?.dispose();
  [city, outlines, sky, series, mark, files, map] = [made, edges, undefined, undefined, undefined, next.files, next.map];
  at("progress").value = 0;
  if (!["shadow", "heights"].includes(at("layer").value)) at("layer").value = "shadow";
  await show();
  ready();
  const doubts = city.doubts.length ? ` ${city.doubts.join(" ")}` : "";
  say(`${text}: ${city.rows} × ${city.cols} pixels of ${city.pixelSize} m${city.missing ? `, ${city.missing} without a height` : ""}. Move the time.${doubts}`);
}
const example = () => {
  const n = Number(at("example").value);
  return take(() => lockstep.sampleCity({ device: at("device").value, rows: n, cols: n, pixel_size: 1, seed: 1 }), "A made-up city", { files: {}, map: {} });
};
const cityOfFiles = (grids, where) => take(() => {
  const { dsm } = grids, layersOf = Object.fromEntries(Object.entries(grids).map(([role, g]) => [role, g.bytes ? { name: g.name, bytes: g.bytes } : { values: g.values, rows: g.rows, cols: g.cols }]));
  return lockstep.city({ ...layersOf, device: at("device").value, pixel_size: dsm.pixelSize ?? 1, canopy: at("canopy").value });
}, grids.dsm.name, { files: grids, map: where });

/** Heights and weather that were dropped; a surface begins a new city, other layers join the one of files that is there. */
async function takeAll(list) {
  const found = {};
  let table;
  for (const file of list) {
    const role = roleOf(file.name) ?? "dsm";
    if (role === "weather") table = { name: file.name, text: await file.text() };
    else if (role === "landcover") throw new Error(`${file.name}: this page does not use land cover. Drop the other files without it.`);
    else if (found[role]) throw new Error(`${found[role].name} and ${file.name} are both taken for the ${names[role]}: drop one, or name the other layers with “dem”, “cdsm” or “tdsm”.`);
    else found[role] = await readRaster(new Uint8Array(await file.arrayBuffer()), file.name);
  }
  if (Object.keys(found).length > 0) {
    const grids = found.dsm ? found : { ...files, ...found };
    if (!grids.dsm) throw new Error("A surface is missing. Drop the file with ground and buildings, its name with “dsm”, together with the others.");
    const { dsm } = grids, size = dsm.rows ? [dsm.cols, dsm.rows] : [0, 0], half = (dsm.pixelSize ?? 1) / 2;
    const lies = dsm.epsg && dsm.x !== undefined ? placeOf(dsm.epsg, dsm.x + size[0] * half, dsm.y - size[1] * half) : undefined;
    await cityOfFiles(grids, { x: dsm.x, y: dsm.y, epsg: dsm.epsg, convergence: lies?.convergence });
    if (lies) {
      at("latitude").value = lies.latitude.toFixed(6);
      at("longitude").value = lies.longitude.toFixed(6);
      at("offset").value = Math.round(lies.longitude / 15);
      await show();
    } else {
      say(`${at("verdict").textContent} The file does not say where it is: set latitude, longitude and hours from UTC.`);
    }
  }
  if (table) await takeWeather(table);
}
/** Weather for the days that its file covers; what is none is refused, and the weather before it stays. */
async function takeWeather({ name, text }) {
  await stop();
  const about = await alone(() => lockstep.weather(text, name));
  series = undefined;
  weather = { name, text, ...about };
  if (!map.epsg && about.latitude !== undefined) [at("latitude").value, at("longitude").value] = [about.latitude, about.longitude];
  if (about.utc_offset !== undefined) at("offset").value = about.utc_offset;
  const [low, high] = daysOf(about), date = at("date");
  [date.min, date.max, date.value] = [low, high, nearestDay(date.value, about)];
  await show();
  say(`${name}: weather of ${low === high ? low : `${low} to ${high}`}. Press “Compute the day’s warmth”.`);
}

/** Work in tiles that shows its layer as it grows. */
async function compute(layer, work, done) {
  if (busy || !city) return;
  [busy, stops] = [true, false];
  ready();
  at("layer").value = layer;
  const begun = performance.now();
  let drawn = 0;
  try {
    await alone(() => work(async (tiles, count) => {
      at("progress").value = tiles / count;
      if (performance.now() - drawn < (calm.matches ? 500 : 50) && tiles < count) return !stops;
      drawn = performance.now();
      [values, shown, moment] = [await gridOf(layer), layer, isSeries(layer) ? series.times[stepOf()] : moment];
      draw();
      at("numbers").textContent = `${tiles} of ${count} tiles in ${((performance.now() - begun) / 1000).toFixed(1)} s on ${city.device}. ${fallbackText(city.fallbacks)}`;
      return !stops;
    }));
    await show();  // the time and the layer may have been changed meanwhile
    say(stops ? "Stopped." : done(), stops ? "" : "good");
  } catch (error) {
    say(error.message, "bad");
  }
  busy = false;
  ready();
  for (const line of city.notes) at("notes").textContent = line;
}
const computeSky = () => compute("svf", (onTile) => {
  sky = true;
  return city.sky({ side, onTile });
}, () => "The sky view factor of every pixel is there.");
const computeDay = () => compute(isSeries(at("layer").value) ? at("layer").value : "utci", async (onTile) => {
  series = undefined;
  const [latitude, longitude, utc_offset] = spot(), date = at("date").value;
  const clear = () => clearDay(date, (time) => lockstep.sun(time, latitude, longitude, utc_offset).altitude);
  series = await city.series({ weather: weather?.text ?? clear(), latitude, longitude, utc_offset, convergence: map.convergence ?? 0, ...hoursOf(date, weather),
    outputs: "tmrt,utci,shadow", side, onTile: (tiles, count, part) => {
      series = part;
      return onTile(tiles, count);
    } });
}, () => "The day is there: move the time.");

function listen() {
  at("time").addEventListener("input", () => {
    at("clock").textContent = when();
    if (!busy) shows();
  });
  at("layer").addEventListener("change", () => { if (!busy) shows(); });
  for (const id of ["date", "latitude", "longitude", "offset"]) at(id).addEventListener("change", () => {
    if (busy) return;
    series = undefined;
    shows();
  });
  at("example").addEventListener("change", () => example().catch((error) => say(error.message, "bad")));
  for (const id of ["device", "canopy"]) at(id).addEventListener("change", () => (files.dsm ? cityOfFiles(files, map) : example()).catch((error) => say(error.message, "bad")));
  at("sky").addEventListener("click", computeSky);
  at("day").addEventListener("click", computeDay);
  at("stop").addEventListener("click", stop);
  const pixel = (event) => {
    const [x, y] = place(view, event);
    return [Math.max(0, Math.min(city.cols - 1, Math.floor(x))), Math.max(0, Math.min(city.rows - 1, Math.floor(y)))];
  };
  view.addEventListener("pointermove", (event) => values && tell(pixel(event)));
  view.addEventListener("pointerdown", (event) => {
    if (!values) return;
    mark = pixel(event);
    draw();
  });
  view.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || !values) return;
    event.preventDefault();
    const by = event.shiftKey ? 10 : 1, from = mark ?? [city.cols >> 1, city.rows >> 1];
    mark = [Math.max(0, Math.min(city.cols - 1, from[0] + by * step[0])), Math.max(0, Math.min(city.rows - 1, from[1] + by * step[1]))];
    draw();
  });
  const name = () => `${shown}_${moment.replace("T", "_").replace(":", "")}`;
  at("png").addEventListener("click", () => view.toBlob((blob) => download(`${name()}.png`, blob)));
  at("npy").addEventListener("click", () => download(`${name()}.npy`, npyOf(values, [city.rows, city.cols])));
  at("tif").addEventListener("click", () => download(`${name()}.tif`, [tiffOf(values, city.rows, city.cols, { pixelSize: city.pixelSize, ...map })], "image/tiff"));
  takeFiles(at("file"), takeAll, { kinds: "GeoTIFF, .npy or .asc files of heights, or a file of weather", most: 200e6 });
  onScheme(() => values && draw());
}

async function main() {
  for (const [id, value] of new URLSearchParams(location.search)) if (["device", "example", "date", "latitude", "longitude", "offset", "time"].includes(id)) at(id).value = value;
  at("clock").textContent = when();
  lockstep = await load({ print: (line) => { at("notes").textContent = line; } });
  listen();
  await example();
  performance.mark("ready");
}

main().catch((error) => say(`This page cannot run here: ${error.message}`, "bad"));
