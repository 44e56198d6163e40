// Cities through lockstep.js under node: the native program's bits, refusals; and the readers of the page against files that GDAL wrote.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { InputError, load, npy, site } from "./site.mjs";

const page = (name) => import(new URL(name, site));
const { clearDay } = await page("city/day.js");
const digest = (values) => createHash("sha256").update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength)).digest("hex");
const python = (script, ...given) =>
  JSON.parse(execFileSync(process.env.WEB_PYTHON ?? "python3", ["-B", fileURLToPath(new URL(script, import.meta.url)), ...given], { encoding: "utf8", maxBuffer: 1 << 26 }));
const place = { latitude: 57.7, longitude: 11.97, utc_offset: 1 };
let ls, weather;
before(async () => {
  ls = await load();
  weather = clearDay("2015-06-21", (time) => ls.sun(time, place.latitude, place.longitude, place.utc_offset).altitude);
});

test("shadows, sky view factors and warmth are those of the native program, whatever the tiles", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lockstep-city-"));
  const grids = {};
  let native;
  try {
    await writeFile(join(folder, "day.csv"), weather);
    native = python("native_city.py", join(folder, "day.csv"), join(folder, "city"));
    for (const name of ["dsm", "dem", "cdsm", "tdsm"]) grids[name] = { name: `${name}.npy`, bytes: await readFile(join(folder, "city", `${name}.npy`)) };
  } finally {
    await rm(folder, { recursive: true });
  }
  const city = await ls.city({ ...grids, pixel_size: 2, device: "cpu" });
  assert.equal(city.missing, 12);
  for (const [azimuth, altitude] of [[203.5, 31.25], [90, 8]]) {
    const { buildings, vegetation } = await city.shadows(azimuth, altitude);
    assert.equal(digest(buildings), native[`buildings ${azimuth.toFixed(1)}`], `buildings at ${azimuth}`);
    assert.equal(digest(vegetation), native[`vegetation ${azimuth.toFixed(1)}`], `vegetation at ${azimuth}`);
  }
  const grown = [];
  const svf = await city.sky({ side: 32, onTile: async (done, count) => grown.push([done, count, (await city.svf()).filter((value) => value >= 0).length]) });
  assert.equal(digest(svf), native.svf);
  assert.deepEqual(grown.map(([done, count]) => [done, count]), [[1, 4], [2, 4], [3, 4], [4, 4]]);
  assert.deepEqual(grown.map(([, , pixels]) => pixels), [32 * 32 - 12, 32 * 48 - 12, 56 * 48 - 24 * 16 - 12, 56 * 48 - 12]);
  const hours = { weather, ...place, start: "2015-06-21T12:00", end: "2015-06-21T14:00", outputs: "tmrt,utci,shadow" };
  const { times, outputs, finished, grid } = await city.series({ ...hours, side: 32 });
  assert.deepEqual([times, outputs, finished], [native.times, ["tmrt", "utci", "shadow"], true]);
  for (const output of outputs) for (const step of [0, 1, 2]) assert.equal(digest(await grid(output, step)), native[`${output} ${step}`], `${output} ${step}`);
  const sun = ls.sun("2015-06-21T14:30", place.latitude, place.longitude, place.utc_offset);
  [sun.azimuth, sun.altitude].forEach((angle, k) => assert.ok(Math.abs(angle - native.sun[k]) < 1e-10, `${angle} near ${native.sun[k]}`));
  // The grid's north turns the sun's course on the grid, and with it the shadows.
  const turned = await city.series({ ...hours, convergence: 40, end: "2015-06-21T12:00", side: 64 });
  assert.notEqual(digest(await turned.grid("shadow", 0)), native["shadow 0"]);
});

test("the made-up city is the same for a seed", async () => {
  const size = { device: "cpu", rows: 40, cols: 60, pixel_size: 1 }, [one, same, other] = await Promise.all([5, 5, 6].map((seed) => ls.sampleCity({ ...size, seed })));
  assert.deepEqual([one.rows, one.cols, one.pixelSize, one.plants, one.missing], [40, 60, 1, true, 0]);
  assert.equal(digest(await one.grid("dsm")), digest(await same.grid("dsm")));
  assert.notEqual(digest(await one.grid("dsm")), digest(await other.grid("dsm")));
});

test("a function that gives false ends the tiles; sizes and names that make no sense are refused", async () => {
  const flat = (rows, cols, value = 0) => ({ values: new Float32Array(rows * cols).fill(value), rows, cols });
  const city = await ls.city({ dsm: { name: "flat.npy", bytes: npy("<f4", [40, 40], new Float32Array(1600)) }, device: "cpu" });
  assert.ok((await city.sky({ side: 16, onTile: () => false })).filter((value) => value >= 0).length === 256);
  assert.ok((await city.sky({ side: 64 })).every((value) => Math.abs(value - 1) < 1e-3), "a plain sees all of the sky");
  const refused = (work, expected) => assert.rejects(work, (error) => error instanceof InputError && expected.test(error.message));
  await refused(ls.city({ device: "cpu" }), /dsm/);
  await refused(ls.city({ dsm: flat(4, 4), dxm: flat(4, 4) }), /dxm/);
  await refused(ls.city({ dsm: flat(4, 4), cdsm: flat(4, 5), device: "cpu" }), /^grid of 4 x 5 \[cdsm\]: expected 4 x 4 as in the DSM$/);
  await refused(ls.city({ dsm: flat(4, 4, NaN), device: "cpu" }), /height/);
  await refused(ls.city({ dsm: { values: [1, 2], rows: 1, cols: 2 } }), /lockstep\.city, dsm.*typed array/);
  await refused(ls.city({ dsm: { ...flat(4, 4), rows: 5 } }), /^16 elements \[lockstep\.city, dsm\]: expected .* of this shape/);
  await refused(ls.city({ dsm: flat(2001, 2000), device: "cpu" }), /4000000/);
  await refused(ls.city({ dsm: flat(4, 4), pixel_size: -1, device: "cpu" }), /pixel/);
  await refused(ls.city({ dsm: flat(4, 4), pixel_size: NaN, device: "cpu" }), /pixel_size/);
  await refused(city.shadows(90, -1), /^altitude -1 .*above 0 and at most 90 degrees$/);
  await refused(city.shadows(90, 91), /^altitude 91 .*above 0 and at most 90 degrees$/);
  await refused(city.grid("cdsm"), /cdsm/);
  await refused(city.series({ weather: "", ...place }), /weather/);
  await refused(city.series({ weather: 5 }), /weather/);
  await refused(city.series({ weather, ...place, outputs: "heat" }), /heat/);
  await refused(city.series({ weather, ...place, tile: { side: 4 } }), /tile/);
  await refused(city.series({ weather, latitude: 57 }), /latitude|offset|longitude/);
  await refused(city.series({ weather, ...place, start: "2016-01-01T00:00" }), /2016|time/);
  assert.throws(() => ls.sun("noon", 0, 0, 0), InputError);
  city.dispose();
  await refused(city.sky(), /city/);
});

test("GeoTIFFs that GDAL wrote: every compression, predictor, type, order of bytes and layout", async (t) => {
  const { readTiff, tiffOf } = await page("city/geotiff.js"), { placeOf } = await page("city/places.js");
  const folder = await mkdtemp(join(tmpdir(), "lockstep-tiff-"));
  try {
    const { skipped, files, wrong, places } = python("tiff_files.py", folder);
    if (skipped) return t.skip(skipped);
    assert.ok(files.length > 100);
    for (const file of files) {
      const expected = new Float32Array((await readFile(join(folder, `${file}.f32`))).buffer), read = await readTiff(new Uint8Array(await readFile(join(folder, `${file}.tif`))), file);
      assert.equal(digest(read.values), digest(expected), file);
      assert.deepEqual([read.rows, read.cols, read.pixelSize, read.x, read.y, read.epsg], [37, 53, 2, 500000, 6400000, 32632], file);
    }
    for (const file of wrong)
      await assert.rejects(readFile(join(folder, `${file}.tif`)).then((bytes) => readTiff(new Uint8Array(bytes), file)), /Expected/, file);
    for (const [epsg, x, y, latitude, longitude, convergence] of places) {
      const found = placeOf(epsg, x, y);
      for (const [name, value] of Object.entries({ latitude, longitude, convergence })) assert.ok(Math.abs(found[name] - value) < 1e-7, `EPSG ${epsg}: ${name} ${found[name]}, PROJ has ${value}`);
    }
    const values = Float32Array.from({ length: 6 }, (_, k) => (k === 2 ? NaN : 1.5 * k)), made = tiffOf(values, 2, 3, { pixelSize: 2, x: 100, y: 300, epsg: 3006 });
    await writeFile(join(folder, "made.tif"), made);
    assert.deepEqual(python("tiff_files.py", join(folder, "made.tif"), "read"), { values: [0, 1.5, null, 4.5, 6, 7.5], transform: [2, 0, 100, 0, -2, 300], epsg: 3006, nodata: null });
    assert.equal(digest((await readTiff(made, "made")).values), digest(values));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("codes that no projection here has are no place", async () => {
  const { placeOf } = await page("city/places.js");
  for (const epsg of [undefined, 4326, 3857, 32600, 32661, 25899]) assert.equal(placeOf(epsg, 500000, 0), undefined, String(epsg));
});

test("ASCII grids, names and weather", async () => {
  const { readRaster, roleOf } = await page("city/rasters.js"), { daysOf, hoursOf, nearestDay } = await page("city/day.js");
  const bytes = (text) => new TextEncoder().encode(text);
  const grid = await readRaster(bytes("ncols 3\r\nnrows 2\r\nxllcorner 10\nyllcorner 20\ncellsize 2\nNODATA_value -9999\n1 2 3\n4 -9999 6.5\n"), "a.asc");
  assert.deepEqual([grid.rows, grid.cols, grid.pixelSize, grid.x, grid.y, [...grid.values]], [2, 3, 2, 10, 24, [1, 2, 3, 4, NaN, 6.5]]);
  assert.equal((await readRaster(bytes("ncols 1\nnrows 1\nxllcenter 11\nyllcenter 21\ncellsize 2\n7"), "b.ASC")).x, 10);
  for (const [text, name, expected] of [["ncols 2\nnrows 2\ncellsize 1\n1 2 3\n", "c.asc", /3 numbers/], ["ncols 2\nnrows 1\ncellsize 1\n1 x\n", "d.asc", /'x'/],
    ["ncols 99999\nnrows 99999\ncellsize 1\n1\n", "e.asc", /4000000/], ["ncols 1\nnrows 1\n1\n", "f.asc", /cellsize/], ["hello", "g.png", /no height grid/], ["", "h.tif", /no height grid/]])
    await assert.rejects(readRaster(bytes(text), name), (error) => expected.test(error.message) && error.message.startsWith(name));
  assert.deepEqual(["DSM_2m.tif", "my_dtm.asc", "Canopy.npy", "trees_cdsm.tif", "x.epw", "met.txt", "a.csv", "town.tif", "LandCover_2m.tif"].map(roleOf), ["dsm", "dem", "cdsm", "cdsm", "weather", "weather", "weather", undefined, "landcover"]);
  const about = ls.weather(weather, "day.csv"), rest = "T12:00";
  assert.deepEqual(about, { first: "2015-06-21T01:00", last: "2015-06-22T00:00" });
  assert.deepEqual(daysOf(about), ["2015-06-21", "2015-06-21"]);
  assert.deepEqual(hoursOf("2015-06-21", about), { start: about.first, end: about.last });
  assert.deepEqual(hoursOf("2015-12-31"), { start: "2015-12-31T01:00", end: "2016-01-01T00:00" });
  const years = { first: "2001-01-01T01:00", last: "2002-01-01T00:00" }, some = { first: `2003-02-27${rest}`, last: `2003-03-02${rest}` };
  assert.deepEqual([nearestDay("2015-06-21", years), nearestDay("2016-02-29", years), nearestDay("2015-06-21", some)], ["2001-06-21", "2001-02-28", "2003-02-27"]);
  assert.deepEqual([hoursOf("2003-02-27", some).start, hoursOf("2003-03-02", some).end], [some.first, some.last]);
  assert.deepEqual(daysOf({ first: "1997-06-06T00:00", last: "1997-06-06T23:00" }), ["1997-06-06", "1997-06-06"]);
  for (const text of ["", "hello", "LOCATION,x", "time,Ta,RH\n"]) assert.throws(() => ls.weather(text, "w.txt"), (error) => error instanceof InputError && /w\.txt/.test(error.message));
});

const flat = (Numbers, high) => {
  const values = new Numbers(400).fill(3);
  values.fill(high, 150, 160);
  return { values, rows: 20, cols: 20 };
};

test("heights of whole numbers are heights", async () => {
  const sky = async (dsm) => Array.from(await (await ls.city({ dsm, pixel_size: 1, device: "cpu" })).sky());
  const expected = await sky(flat(Float32Array, 12));
  assert.ok(Math.min(...expected) < 0.8);
  for (const Numbers of [Uint16Array, Int16Array, Uint8Array, Float64Array, Int32Array]) assert.deepEqual(await sky(flat(Numbers, 12)), expected, Numbers.name);
});

test("a series keeps its own grids, or says that it is over", async () => {
  const city = await ls.city({ dsm: flat(Float32Array, 12), pixel_size: 1, device: "cpu" });
  const at = (hour, outputs) => city.series({ weather, ...place, start: `2015-06-21T${hour}:00`, end: `2015-06-21T${hour}:00`, outputs });
  const first = await at(12, "tmrt,utci"), warm = Array.from(await first.grid("tmrt", 0));
  const both = await Promise.allSettled([at(15, "utci,tmrt"), at(16, "tmrt")]), second = both[0].value;
  assert.ok(both[1].reason instanceof InputError && /another one of this city/.test(both[1].reason.message));
  await assert.rejects(first.grid("tmrt", 0), (error) => error instanceof InputError && /a later one/.test(error.message));
  assert.notDeepEqual(Array.from(await second.grid("tmrt", 0)), warm);
});

test("options of cities that nothing takes are refused", async () => {
  const dsm = flat(Float32Array, 12), city = await ls.city({ dsm, pixel_size: 1, device: "cpu" });
  const refused = (promise, pattern) => assert.rejects(promise, (error) => error instanceof InputError && (assert.match(error.message, pattern), true));
  for (const canopy of ["Absolute", "abs", ""]) await refused(ls.city({ dsm, pixel_size: 1, device: "cpu", canopy }), /canopy.*above-ground or absolute/);
  const series = (more) => city.series({ weather, ...place, outputs: "tmrt", ...more });
  await refused(series({ wall_albedo: NaN }), /wall_albedo = NaN/);
  await refused(series({ start: NaN }), /start = NaN/);
  await refused(series({ no_such: null }), /option no_such/);
  await refused(series({ threshold: "utci>35" }), /option threshold/);
  await refused(city.series({ weather, latitude: 57.7, longitude: 11.97, outputs: "tmrt" }), /expected utc_offset,/);
  await refused(city.sky({ sides: 3 }), /option sides/);
  for (const name of ["trunk_ratio", "dsm_heights", "canopy", "pixel_size", "band"]) await refused(series({ [name]: 1 }), /options of the city/);
  await refused(ls.city({ dsm, pixel_size: 1, device: "cpu", dsm_heights: "high" }), /dsm_heights high.*absolute or above-ground/);
  await refused(ls.city({ dsm, pixel_size: 1, device: "cpu", dsm_heights: "above-ground" }), /dem/);
  await refused(ls.sampleCity({ row: 20 }), /option row/);
});

test("trunks and heights above ground are those of the same grids written out", async () => {
  const grid = (of) => ({ values: Float32Array.from({ length: 400 }, (_, k) => of(Math.floor(k / 20), k % 20)), rows: 20, cols: 20 });
  const tree = (high) => (row, col) => (row > 4 && row < 9 && col > 8 && col < 13 ? high : 0);
  const sky = async (grids) => {
    const city = await ls.city({ pixel_size: 1, device: "cpu", ...grids });
    const { vegetation } = await city.shadows(200, 30);
    return [...(await city.sky()), ...vegetation].join();
  };
  const dsm = grid((row) => 5 + 0.1 * row), cdsm = grid(tree(8)), low = await sky({ dsm, cdsm, trunk_ratio: 0.5 });
  assert.equal(low, await sky({ dsm, cdsm, tdsm: grid(tree(4)) }));
  assert.notEqual(low, await sky({ dsm, cdsm }));
  const dem = grid((row) => 5 + 0.5 * row), above = grid(tree(6)), whole = grid((row, col) => 5 + 0.5 * row + tree(6)(row, col));
  assert.equal(await sky({ dsm: above, dem, dsm_heights: "above-ground" }), await sky({ dsm: whole }));
});
