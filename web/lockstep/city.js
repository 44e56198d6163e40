// Cities as height grids: shadows, sky view factors, hours of radiation and comfort.
import { withArrays } from "./arrays.js";
import { pause } from "./core.js";
import { InputError } from "./errors.js";
import { refuseOthers } from "./numbers.js";

/** Options of the files that `lockstep urban run` writes, which have no effect on arrays. */
const ofFiles = ["threshold", "hours", "include_roofs", "format", "pictures", "video", "place", "scenario", "basemap", "picture_range", "daylight_saving"];

const ofCity = ["trunk_ratio", "dsm_heights", "canopy", "pixel_size", "band"];

/** A city. Made by lockstep.city and lockstep.sampleCity. Each promise is to be awaited before the next call. */
export class City {
  #core;
  #series;  // the one whose grids the core has
  #computing = false;
  constructor(core, { handle, rows, cols, pixel_size, missing, plants, relief, doubts = [], ...status }) {
    this.#core = core;
    this.handle = handle;
    /** Pixels, metres of one, pixels without a height, whether there are plants, metres from the lowest point to the highest,
     * and doubts about the grids. */
    Object.assign(this, { rows, cols, pixelSize: pixel_size, missing, plants, relief, doubts });
    this.#note(status);
    core.watch(this, "free_city", { city: handle });
  }
  #note({ device, fallbacks, notes }) {
    Object.assign(this, { device, fallbacks, notes: [...(this.notes ?? []), ...notes].slice(-100) });
  }
  async #ask(call, members = {}) {
    const answer = await this.#core.callWaiting(call, { city: this.handle, ...members });
    if (answer?.device) this.#note(answer);
    return answer;
  }
  async #grids(call, members, planes = 1) {
    const bytes = await this.#core.callWaiting(call, { city: this.handle, ...members }, 4 * planes * this.rows * this.cols);
    return new Float32Array(bytes.buffer);
  }
  /** A grid that the city was given: "dsm", "dem", "cdsm", "tdsm". */
  grid(name) {
    return this.#grids("city_grid", { name });
  }
  /** 1 where no building, and where no plant, hides a sun at these angles (degrees, clockwise from the grid's north; above 0). */
  async shadows(azimuth, altitude) {
    const both = await this.#grids("city_shadows", { azimuth, altitude }, 2), pixels = this.rows * this.cols;
    await this.#ask("city_status");
    return { buildings: both.subarray(0, pixels), vegetation: both.subarray(pixels) };
  }
  async #tiles(count, call, onTile) {
    for (let tile = 0; tile < count; ++tile) {
      await this.#ask(call, { tile });
      if ((await onTile?.(tile + 1, count)) === false) return false;
      await pause();
    }
    return true;
  }
  /** Sky view factors, tile by tile: onTile gets how many are done, and ends the work with false. */
  async sky({ side = 64, onTile, ...others } = {}) {
    refuseOthers(others, "city.sky", "side, onTile");
    const { tiles } = await this.#ask("begin_sky", { side });
    await this.#tiles(tiles, "sky_tile", onTile);
    return this.svf();
  }
  /** The sky view factors so far; NaN elsewhere. */
  svf() {
    return this.#grids("city_svf");
  }
  /** Hours of weather (the text of an EPW, UMEP or CSV file), tile by tile as above. Options are those of `lockstep urban run`:
   * latitude, longitude, utc_offset, start, end, outputs ("tmrt,utci,shadow") …; `convergence` is the direction of the grid's north
   * (degrees clockwise from true north). */
  async series({ weather, convergence = 0, side = 64, onTile, ...options }) {
    if (typeof weather !== "string" || !weather.trim()) throw new InputError("weather", "city.series", "the text of an EPW, UMEP or CSV file");
    for (const name of ofFiles)
      if (options[name]) throw new InputError(`option ${name}`, "city.series", "none of the files of a run: a page gets the grids");
    for (const name of ofCity)
      if (name in options) throw new InputError(`option ${name}`, "city.series", "options of the city in lockstep.city");
    if (this.#computing) throw new InputError("a series while another one of this city is computed", "city.series", "a page that awaits each");
    this.#computing = true;
    this.#series = null;
    return this.#compute({ weather, convergence, side, options }, onTile).finally(() => (this.#computing = false));
  }
  async #compute(request, onTile) {
    const { times, outputs, tiles } = await this.#ask("begin_series", request);
    const own = (this.#series = {});
    const grid = async (output, step) => {
      if (this.#series !== own) throw new InputError("a series that a later one of this city replaced", "grid", "the last series");
      return this.#grids("series_grid", { output: outputs.indexOf(output), step });
    };
    const finished = await this.#tiles(tiles, "series_tile", (done, count) => onTile?.(done, count, { times, outputs, grid }));
    return { times, outputs, finished, grid };
  }
  dispose() {
    this.#core.unwatch(this, "free_city", { city: this.handle });
  }
}

/** Heights as f32: of whole numbers, too, as rasters often have them. */
function heightsOf(values) {
  const numbers = [Float64Array, Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array];
  return numbers.some((Numbers) => values instanceof Numbers) ? Float32Array.from(values) : values;
}

const layers = ["dsm", "dem", "cdsm", "tdsm"];

/** dsm_heights and canopy: "absolute" or "above-ground"; trunk_ratio: share of a plant's height without leaves, where no tdsm says it.
 * Grids are { values, rows, cols } with a Float32Array from the north-west corner on, or { name, bytes } of an .npy file. */
export async function makeCity(core, { device = "auto", pixel_size = 1, canopy = "above-ground", dsm_heights = "absolute", trunk_ratio = 0.25, ...grids }) {
  const named = {};
  for (const [name, grid] of Object.entries(grids)) {
    if (!layers.includes(name)) throw new InputError(`grid ${name}`, "lockstep.city", layers.join(", "));
    if (grid) named[name] = grid.bytes ? grid : { values: heightsOf(grid.values), shape: [grid.rows, grid.cols] };
  }
  if (!named.dsm) throw new InputError("a city without heights", "lockstep.city", "dsm, a grid of ground and buildings");
  return withArrays(core, named, "lockstep.city", async (taken) => new City(core, await core.callWaiting("city", { device, pixel_size, canopy, dsm_heights, trunk_ratio, ...taken })));
}
/** The city that `lockstep urban sample` makes of a seed. */
export async function makeSampleCity(core, { device = "auto", rows = 192, cols = 192, pixel_size = 1, seed = 1, ...others }) {
  refuseOthers(others, "lockstep.sampleCity", "device, rows, cols, pixel_size, seed");
  return new City(core, await core.callWaiting("sample_city", { device, rows, cols, pixel_size, seed }));
}
