// GeoTIFFs as height grids: the first band of the first image, in strips or tiles, uncompressed, deflated or by LZW; and back,
// uncompressed. Of the map: pixel size, upper left corner, EPSG code.

const kinds = { 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8 };  // bytes of a TIFF type
const tags = { 256: "width", 257: "height", 258: "bits", 259: "compression", 273: "offsets", 277: "samples", 278: "rows", 279: "counts", 284: "planar",
  317: "predictor", 322: "tileWidth", 323: "tileHeight", 324: "offsets", 325: "counts", 339: "format", 33550: "scale", 33922: "tie", 34264: "matrix",
  34735: "keys", 42112: "metadata", 42113: "nodata" };
const largestGrid = 4_000_000;

/** What is wrong with a file, as a sentence. */
export function fail(name, what, expected) {
  throw new Error(`${name}: ${what}. Expected ${expected}.`);
}
/** Refuses grids that are too large for a page. */
export function checkSize(name, rows, cols) {
  if (cols * rows > largestGrid) fail(name, `${rows} × ${cols} pixels`, `at most ${largestGrid} on this page: cut out a part of it`);
}

/** The directory of the first image: arrays of numbers by the names above; texts stay texts. */
function directory(view, little, name) {
  const within = (at, size) => (at >= 0 && at + size <= view.byteLength) || fail(name, "the file ends too early", "a whole TIFF file");
  const start = view.getUint32(4, little);
  within(start, 2);
  const count = view.getUint16(start, little), found = {};
  within(start + 2, 12 * count);
  for (let k = 0; k < count; ++k) {
    const entry = start + 2 + 12 * k, tag = tags[view.getUint16(entry, little)], type = view.getUint16(entry + 2, little), items = view.getUint32(entry + 4, little);
    if (!tag || !kinds[type]) continue;
    const bytes = items * kinds[type], at = bytes <= 4 ? entry + 8 : view.getUint32(entry + 8, little);
    within(at, bytes);
    const read = { 1: (p) => view.getUint8(p), 3: (p) => view.getUint16(p, little), 4: (p) => view.getUint32(p, little), 12: (p) => view.getFloat64(p, little),
      11: (p) => view.getFloat32(p, little), 8: (p) => view.getInt16(p, little), 9: (p) => view.getInt32(p, little) }[type];
    if (type === 2) found[tag] = new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at, bytes)).replace(/\0.*$/s, "");
    else if (read) found[tag] = Array.from({ length: items }, (_, i) => read(at + i * kinds[type]));
  }
  return found;
}

/** Bytes of a deflated block, at most `size` of them. */
async function inflated(bytes, size, name) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader(), out = new Uint8Array(size);
  let at = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      out.set(value.subarray(0, size - at), at);
      at += Math.min(value.length, size - at);
      if (at === size) {
        reader.cancel().catch(() => {});
        break;
      }
    }
  } catch {
    if (at < size) fail(name, "a block cannot be inflated", "an undamaged file");
  }
  return at < size ? fail(name, "a block is too short", "an undamaged file") : out;
}
/** The same of TIFF's LZW: codes of 9 to 12 bits, the first bit first, each width left one code early. A code's string is where
 * the output had it: the one before it and the byte that came then. */
function unpacked(bytes, size, name) {
  const clear = 256, end = 257, damaged = () => fail(name, "a block of LZW is damaged", "an undamaged file");
  const out = new Uint8Array(size), starts = new Uint32Array(4096), lengths = new Uint32Array(4096);
  let at = 0, bits = 0, held = 0, from = 0, width = 9, next = 258, start = 0, length = 0;
  while (at < size) {
    for (; bits < width; bits += 8) held = ((held << 8) | (from < bytes.length ? bytes[from++] : damaged())) & 0xffffff;
    const code = (held >> (bits - width)) & ((1 << width) - 1);
    bits -= width;
    if (code === end) damaged();
    if (code === clear) {
      [width, next, length] = [9, 258, 0];
      continue;
    }
    if (length > 0 && next < 4096) [starts[next], lengths[next]] = [start, length + 1], ++next;
    if (code >= next) damaged();
    [start, length] = [at, code < 256 ? 1 : lengths[code]];
    if (code < 256) out[at++] = code;
    else for (let k = 0, p = starts[code]; k < length && at < size; ++k) out[at++] = out[p + k];
    if (next + 1 >= 1 << width && width < 12) ++width;
  }
  return out;
}

/** Undoes the differences between neighbours of a row, in place. */
function undoPredictor(predictor, bytes, { columns, rows, samples, size, little }) {
  const line = columns * samples * size, view = new DataView(bytes.buffer);
  for (let row = 0; row < rows && predictor > 1; ++row) {
    const at = row * line;
    if (predictor === 3) {  // of floats: bytes of all numbers, the highest first, as differences
      for (let k = samples; k < line; ++k) bytes[at + k] += bytes[at + k - samples];
      const shuffled = bytes.slice(at, at + line), count = columns * samples;
      for (let k = 0; k < count; ++k) for (let b = 0; b < size; ++b) bytes[at + k * size + (little ? size - 1 - b : b)] = shuffled[b * count + k];
    } else if (size === 1) {
      for (let k = samples; k < line; ++k) bytes[at + k] += bytes[at + k - samples];
    } else {
      const [get, set] = { 2: ["getUint16", "setUint16"], 4: ["getUint32", "setUint32"] }[size];
      for (let k = samples; k < columns * samples; ++k)
        view[set](at + k * size, view[get](at + k * size, little) + view[get](at + (k - samples) * size, little), little);
    }
  }
}

const getters = { "1 8": "getUint8", "1 16": "getUint16", "1 32": "getUint32", "2 8": "getInt8", "2 16": "getInt16", "2 32": "getInt32",
  "3 32": "getFloat32", "3 64": "getFloat64" };

const feet = new Set([6360, 8228]);  // EPSG codes of vertical systems
/** Refuses values that are not heights in metres as they stand. */
function expectMetres(metadata, name) {
  for (const [, attributes, text] of metadata.matchAll(/<Item\b([^>]*)>([^<]*)<\/Item>/g)) {
    const role = /role="(\w+)"/.exec(attributes)?.[1];
    if ((role === "scale" && Number(text) !== 1) || (role === "offset" && Number(text) !== 0))
      fail(name, `packed values, with a ${role} of ${text}`, "heights as they are (gdal_translate -unscale -ot Float32)");
    if (role === "unittype" && !/^(m|met(er|re)s?)$/i.test(text.trim())) fail(name, `heights in ${text}`, "metres");
  }
}

/** Where the grid is on the map: pixel size, upper left corner, EPSG code; {} where the file does not say. */
function mapOf(found, name) {
  const { scale, tie, matrix, keys = [], metadata = "" } = found, map = {};
  expectMetres(metadata, name);
  if (matrix?.length === 16) {
    if (matrix[1] !== 0 || matrix[4] !== 0) fail(name, "the grid is rotated", "north up");
    if (!(matrix[0] > 0 && matrix[5] < 0)) fail(name, "the grid is mirrored", "its first row in the north and its first column in the west");
    if (Math.abs(matrix[0] + matrix[5]) > 1e-3 * matrix[0]) fail(name, `pixels of ${matrix[0]} × ${-matrix[5]}`, "square ones");
    [map.pixelSize, map.x, map.y] = [matrix[0], matrix[3], matrix[7]];
  } else if (scale?.length >= 2) {
    if (Math.abs(scale[0] - scale[1]) > 1e-3 * Math.abs(scale[0])) fail(name, `pixels of ${scale[0]} × ${scale[1]}`, "square ones");
    map.pixelSize = (scale[0] + scale[1]) / 2;
    if (tie?.length >= 6) [map.x, map.y] = [tie[3] - tie[0] * scale[0], tie[4] + tie[1] * scale[1]];
  }
  for (let k = 4; k + 3 < keys.length; k += 4) {
    const [key, where, , value] = keys.slice(k, k + 4);
    if (where !== 0) continue;
    if (key === 1024 && value === 2) fail(name, "pixels are in degrees", "a projection in metres, such as UTM (gdalwarp -t_srs)");
    if (key === 3072 && value === 3857) fail(name, "Web Mercator, whose metres are not those of the ground", "a projection such as UTM (gdalwarp -t_srs)");
    if (key === 3072 && value !== 32767) map.epsg = value;
    if ((key === 4099 && value !== 9001) || (key === 4096 && feet.has(value))) fail(name, "its vertical unit is not the metre", "heights in metres");
    if (key === 3076 && value !== 9001) fail(name, "the projection's unit is not the metre", "metres");
  }
  if (map.pixelSize !== undefined && !(map.pixelSize > 0 && map.pixelSize < 1e6)) fail(name, `pixels of ${map.pixelSize} m`, "a size above 0");
  return map;
}

/** What a file's directory says of its image. */
function layout(found, name) {
  const one = (tag, otherwise) => found[tag]?.[0] ?? otherwise ?? fail(name, `no ${tag}`, "a TIFF image");
  const [cols, rows] = [one("width"), one("height")];
  if (!(cols > 0 && rows > 0)) fail(name, "no pixels", "rows and columns");
  checkSize(name, rows, cols);
  const bits = one("bits"), format = one("format", 1), read = getters[`${format} ${bits}`];
  if (!read) fail(name, `values of ${bits} bits, format ${format}`, "whole numbers of 8, 16 or 32 bits, or floats of 32 or 64");
  const samples = one("samples", 1), planar = one("planar", 1), compression = one("compression", 1), predictor = one("predictor", 1);
  if (samples > 64) fail(name, `${samples} bands`, "at most 64");
  if (![1, 5, 8, 32946].includes(compression)) fail(name, `compression ${compression}`, "none, deflate or LZW (gdal_translate -co COMPRESS=DEFLATE)");
  if (![1, 2, 3].includes(predictor) || (predictor === 3 && format !== 3) || (predictor === 2 && bits === 64)) fail(name, `predictor ${predictor}`, "1 to 3 that fits the values");
  const tiled = found.tileWidth !== undefined;
  const blockCols = tiled ? one("tileWidth") : cols, blockRows = tiled ? one("tileHeight") : Math.min(one("rows", rows), rows);
  if (!(blockCols > 0 && blockRows > 0) || blockCols * blockRows > 4 * largestGrid) fail(name, `blocks of ${blockRows} × ${blockCols}`, "smaller ones");
  const across = Math.ceil(cols / blockCols), down = Math.ceil(rows / blockRows);
  if (!(found.offsets?.length >= across * down) || !(found.counts?.length >= across * down)) fail(name, "blocks are missing", "a whole TIFF file");
  return { cols, rows, size: bits / 8, read, samples: planar === 1 ? samples : 1, compression, predictor, tiled, blockCols, blockRows, across, down };
}

/** The first band of a TIFF file: { values (f32, NaN where missing), rows, cols, pixelSize, x, y, epsg }. */
export async function readTiff(bytes, name) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), order = bytes.length >= 8 ? view.getUint16(0) : 0, little = order === 0x4949;
  const magic = bytes.length >= 8 ? view.getUint16(2, little) : 0;
  if ((!little && order !== 0x4d4d) || (magic !== 42 && magic !== 43)) fail(name, "this is no TIFF file", "a GeoTIFF");
  if (magic === 43) fail(name, "this is a BigTIFF file", "a TIFF of less than 4 GB (gdal_translate -co BIGTIFF=NO)");
  const found = directory(view, little, name), all = layout(found, name), map = mapOf(found, name);
  const { cols, rows, size, read, samples, blockCols, across, down } = all;
  const values = new Float32Array(rows * cols), nodata = found.nodata === undefined ? NaN : Math.fround(Number(found.nodata));
  for (let block = 0; block < across * down; ++block) {
    const top = Math.floor(block / across) * all.blockRows, left = (block % across) * blockCols;
    const blockRows = all.tiled ? all.blockRows : Math.min(all.blockRows, rows - top), length = blockRows * blockCols * samples * size;
    const at = found.offsets[block], count = found.counts[block];
    if (at === 0 && count === 0) {  // a block that was never written
      for (let r = top; r < Math.min(top + blockRows, rows); ++r) values.fill(Number.isNaN(nodata) ? 0 : NaN, r * cols + left, r * cols + Math.min(left + blockCols, cols));
      continue;
    }
    if (at + count > bytes.length) fail(name, "the file ends too early", "a whole TIFF file");
    const packed = bytes.subarray(at, at + count);
    const data = all.compression === 1 ? packed.slice() : all.compression === 5 ? unpacked(packed, length, name) : await inflated(packed, length, name);
    if (data.length < length) fail(name, "a block is too short", "an undamaged file");
    undoPredictor(all.predictor, data, { columns: blockCols, rows: blockRows, samples, size, little });
    const numbers = new DataView(data.buffer);
    for (let r = 0; r < Math.min(blockRows, rows - top); ++r)
      for (let c = 0; c < Math.min(blockCols, cols - left); ++c) {
        const value = Math.fround(numbers[read]((r * blockCols + c) * samples * size, little));
        values[(top + r) * cols + left + c] = value === nodata ? NaN : value;
      }
  }
  return { values, rows, cols, ...map };
}

/** An uncompressed GeoTIFF of f32, NaN where missing. */
export function tiffOf(values, rows, cols, { pixelSize, x = 0, y = rows * pixelSize, epsg }) {
  const keys = [1, 1, 0, epsg ? 4 : 2, 1024, 0, 1, 1, 1025, 0, 1, 1, ...(epsg ? [3072, 0, 1, epsg, 3076, 0, 1, 9001] : [])];
  const entries = [[256, 4, [cols]], [257, 4, [rows]], [258, 3, [32]], [259, 3, [1]], [262, 3, [1]], [273, 4, [0]], [277, 3, [1]], [278, 4, [rows]],
    [279, 4, [4 * values.length]], [339, 3, [3]], [33550, 12, [pixelSize, pixelSize, 0]], [33922, 12, [0, 0, 0, x, y, 0]], [34735, 3, keys], [42113, 2, "nan\0"]];
  let room = 8 + 2 + 12 * entries.length + 4;
  const places = entries.map(([, type, items]) => {
    const bytes = items.length * kinds[type];
    if (bytes <= 4) return 0;
    const place = room;
    room += bytes + (bytes & 1);
    return place;
  });
  entries[5][2] = [room];
  const file = new Uint8Array(room + 4 * values.length), view = new DataView(file.buffer);
  view.setUint32(0, 0x4949_2a00);
  view.setUint32(4, 8, true);
  view.setUint16(8, entries.length, true);
  entries.forEach(([tag, type, items], k) => {
    const entry = 10 + 12 * k;
    view.setUint16(entry, tag, true);
    view.setUint16(entry + 2, type, true);
    view.setUint32(entry + 4, items.length, true);
    if (places[k]) view.setUint32(entry + 8, places[k], true);
    const at = places[k] || entry + 8;
    for (let i = 0; i < items.length; ++i) {
      if (type === 2) file[at + i] = items.charCodeAt(i);
      else if (type === 3) view.setUint16(at + 2 * i, items[i], true);
      else if (type === 4) view.setUint32(at + 4 * i, items[i], true);
      else view.setFloat64(at + 8 * i, items[i], true);
    }
  });
  values.forEach((value, k) => view.setFloat32(room + 4 * k, value, true));
  return file;
}
