// Files of a city as height grids, by what they are: GeoTIFF, .npy, ESRI's .asc.
import { checkSize, fail, readTiff } from "./geotiff.js";

/** ESRI's ASCII grid: lines of names and numbers, then rows from the north on. */
function readAscii(text, name) {
  const head = {};
  let at = 0;
  for (let found; (found = /^\s*([a-z_]+)[ \t]+(\S+)[ \t]*\r?\n/i.exec(text.slice(at, at + 200))); at += found[0].length) head[found[1].toLowerCase()] = Number(found[2]);
  const { ncols: cols, nrows: rows, cellsize } = head;
  if (!(Number.isInteger(cols) && Number.isInteger(rows) && cols > 0 && rows > 0)) fail(name, "no ncols and nrows", "the header of an ASCII grid");
  checkSize(name, rows, cols);
  if (!(cellsize > 0)) fail(name, "no cellsize above 0", "metres of a pixel");
  const values = new Float32Array(rows * cols), words = text.slice(at).split(/\s+/).filter(Boolean);
  if (words.length !== rows * cols) fail(name, `${words.length} numbers`, `${rows} × ${cols}`);
  words.forEach((word, k) => {
    const value = Number(word);
    if (Number.isNaN(value) && !/^[-+]?nan$/i.test(word)) fail(name, `'${word.slice(0, 20)}'`, "a number");
    values[k] = value === (head.nodata_value ?? NaN) ? NaN : value;
  });
  const half = (corner, centre) => corner ?? (centre === undefined ? undefined : centre - cellsize / 2);
  const x = half(head.xllcorner, head.xllcenter), low = half(head.yllcorner, head.yllcenter);
  return { values, rows, cols, pixelSize: cellsize, ...(Number.isFinite(x) && Number.isFinite(low) && { x, y: low + rows * cellsize }) };
}

/** A grid for lockstep.city: with values, or with the bytes of an .npy file; and its place on the map. */
export async function readRaster(bytes, name) {
  const start = String.fromCharCode(...bytes.subarray(0, 6));
  if (start === "\x93NUMPY") return { name, bytes };
  if (/^(II|MM)/.test(start)) return { name, ...(await readTiff(bytes, name)) };
  if (/^\s*[a-z]/i.test(start) && /\.(asc|txt|grd)$/i.test(name)) return { name, ...readAscii(new TextDecoder().decode(bytes), name) };
  fail(name, "this is no height grid", "a GeoTIFF (.tif), .npy or .asc");
}

/** What a file's name says it is: a layer of the city, weather, land cover, or undefined. */
export function roleOf(name) {
  if (/\.(epw|csv|met)$/i.test(name) || (/\.txt$/i.test(name) && !/asc/i.test(name))) return "weather";
  if (/land.?cover/i.test(name)) return "landcover";
  const layer = /(cdsm|tdsm|dsm|dem|dtm|canopy|trunk|chm)/i.exec(name)?.[1].toLowerCase();
  return { dtm: "dem", canopy: "cdsm", chm: "cdsm", trunk: "tdsm" }[layer] ?? layer;
}
