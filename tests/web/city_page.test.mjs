// The page "City" in Chromium: the day, the sky, warmth, values, files of every kind, downloads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, damage, drop, drops, keepDownloads, loseDevice, refuses, refusesHugeFile, text, visitor, withGpuBrowser } from "./visit.mjs";

const visit = visitor({ excused: ["data:image/svg+xml;"] });  // Chromium's own calendar, in a field of a date
const small = "city.html?device=cpu&example=96";
const value = text("value"), done = "document.getElementById('stop').disabled && !document.getElementById('sky').disabled";
/** All work that the page has begun is done. */
const settled = 'import("./page.js").then(({ alone }) => alone(() => {}))';
/** Share of the picture's pixels that are as bright as the sun's colour. */
const sunny = `(() => { const c = document.getElementById("view"), copy = new OffscreenCanvas(c.width, c.height).getContext("2d", { willReadFrequently: true }); copy.drawImage(c, 0, 0); const { data } = copy.getImageData(0, 0, c.width, c.height); let n = 0; for (let k = 0; k < data.length; k += 4) n += data[k] > 150; return n / (data.length / 4); })()`;
/** A block of 10 m in the middle of a plain, as a file. */
const block = (n) => `Float32Array.from({ length: ${n * n} }, (_, k) => { const r = Math.floor(k / ${n}), c = k % ${n}; return r >= ${n / 2 - 3} && r < ${n / 2 + 3} && c >= ${n / 2 - 3} && c < ${n / 2 + 3} ? 10 : 0; })`;
const npy = (n, values) => `(async () => { const { npyOf } = await import("./page.js"); return new Uint8Array(await new Blob(npyOf(${values}, [${n}, ${n}])).arrayBuffer()); })()`;
const tif = (n, values, map) => `(async () => { const { tiffOf } = await import("./city/geotiff.js"); return tiffOf(${values}, ${n}, ${n}, ${JSON.stringify(map)}); })()`;
const dropFile = (name, bytes) => drop(name, `await ${bytes}`);

test("a made-up city: shadows move with the time, values are read by keys and by the pointer", (t) =>
  visit(small, { name: "city" }, async (page) => {
    const shares = {};
    for (const time of [0, 360, 720]) {
      await page.evaluate(choose("time", time));
      await page.evaluate(settled);
      assert.equal(await page.evaluate(text("clock")), `${String(time / 60).padStart(2, "0")}:00`);
      shares[time] = await page.evaluate(sunny);
    }
    assert.ok(shares[0] === 0 && shares[360] > 0 && shares[720] > shares[360], JSON.stringify(shares));
    await page.evaluate("document.getElementById('view').focus()");
    await page.key("ArrowDown");
    assert.match(await page.evaluate(value), /^(1|0\.5|0)\.?\d* at 48\.5 m east, 46\.5 m north \(row 49, column 48\)\.$/);
    const { x, y, width, height } = await page.evaluate("document.getElementById('view').scrollIntoView(); JSON.parse(JSON.stringify(document.getElementById('view').getBoundingClientRect()))");
    await page.mouse("mouseMoved", x + width * 0.01, y + height * 0.01);
    await page.until(`/row 0, column 0/.test(${value})`);
    const times = JSON.parse(await page.evaluate(
      "JSON.stringify([performance.getEntriesByName('first-contentful-paint')[0]?.startTime, performance.getEntriesByName('ready')[0].startTime])"));
    t.diagnostic(`first picture after ${times[0]} ms, the city after ${times[1]} ms`);
  }));

test("the sky view grows, can be stopped, and the day's warmth follows the time; a dark phone, by keys", (t) =>
  visit(small, { name: "city_phone_dark", width: 390, height: 1400, phone: true, dark: true }, async (page) => {
    await page.evaluate(choose("layer", "svf"));
    await page.until(`/Compute the sky view/.test(${text("verdict")})`);
    await page.evaluate("document.getElementById('sky').focus()");
    await page.key("Enter");
    await page.until(done);
    assert.match(await page.evaluate(text("verdict")), /every pixel is there/);
    await page.evaluate("document.getElementById('view').focus()");
    await page.key("ArrowDown");
    assert.match(await page.evaluate(value), /^0\.\d{3} at|^1\.000 at/);
    await page.evaluate("document.getElementById('day').click()");
    await page.until(done);
    assert.match(await page.evaluate(text("verdict")), /^The day is there/);
    t.diagnostic(await page.evaluate(text("numbers")));
    const feels = async (time) => {
      await page.evaluate(choose("time", time));
      await page.until(`/ends at 2015-06-21 ${String(time / 60).padStart(2, "0")}:00/.test(${text("numbers")})`);
      return Number(/^(-?[\d.]+) °C/.exec(await page.evaluate(value))[1]);
    };
    const [night, noon] = [await feels(180), await feels(780)];
    assert.ok(night > 0 && noon > night + 5, `${night} at night, ${noon} at noon`);
    await page.evaluate("document.getElementById('day').click(); document.getElementById('stop').click()");
    await page.until(done);
    assert.match(await page.evaluate(text("verdict")), /^Stopped/);
  }));

test("heights of one's own: .npy, GeoTIFF with its place, .asc, other layers, and weather", () =>
  visit(small, {}, async (page) => {
    assert.match(await page.evaluate(dropFile("my_dsm.npy", npy(40, block(40)))), /^my_dsm.npy: 40 × 40 pixels of 1 m.*does not say where it is/);
    const map = { pixelSize: 2, x: 319000, y: 6400000, epsg: 3006 };
    assert.match(await page.evaluate(dropFile("DSM.tif", tif(40, block(40), map))), /^DSM.tif: 40 × 40 pixels of 2 m\. Move the time\.$/);
    assert.deepEqual(await page.evaluate("['latitude', 'longitude', 'offset'].map((id) => Number(document.getElementById(id).value).toFixed(2))"), ["57.71", "11.96", "1.00"]);
    await page.evaluate(choose("layer", "heights"));
    await page.evaluate("document.getElementById('view').focus()");
    await page.key("ArrowDown");
    await page.until(`/^10\\.0 m at 319041\\.0 m east, 6399957\\.0 m north/.test(${value})`);
    // Trees join the surface that is there.
    assert.match(await page.evaluate(dropFile("cdsm.tif", tif(40, "new Float32Array(1600).fill(3)", map))), /^DSM.tif: 40 × 40/);
    await refuses(page, [["cdsm.tif", "await " + tif(30, "new Float32Array(900)", map), /30/]]);
    assert.match(await page.evaluate(drop("dsm.asc", '"ncols 3\\nnrows 2\\nxllcorner 0\\nyllcorner 0\\ncellsize 5\\nNODATA_value -9\\n1 2 3\\n-9 5 6\\n"')), /2 × 3 pixels of 5 m, 1 without a height/);
  }));

/** A typical year's first of June in Lund, as EPW; a fortnight of it as CSV. */
const epw = `"LOCATION,Lund,-,SWE,X,0,55.7,13.2,1.0,50.0\\n" + "HEAD\\n".repeat(6) + "DATA PERIODS,1,1,Data,Friday,1/1,12/31\\n" +
  Array.from({ length: 48 }, (_, h) => [h < 24 ? 1983 : 1991, h < 24 ? 6 : 12, 1, (h % 24) + 1, 60, "-", 15, 8, 60, 101000, 0, 0, 320, 100, 0, 100, 0, 0, 0, 0, 180, 3].join()).join("\\n")`;
const csv = `"time,Ta,RH,wind,Kglobal\\n" + Array.from({ length: 300 }, (_, h) => new Date(Date.UTC(1997, 5, 6, h + 1)).toISOString().slice(0, 16) + (h % 24 > 7 && h % 24 < 16 ? ",15,60,2,100" : ",10,80,2,0")).join("\\n")`;

test("weather of one's own: its days, its place, its hours; what is none is refused at once", () =>
  visit(small, {}, async (page) => {
    const day = "document.getElementById('date').value";
    await refuses(page, [["a.epw", `"LOCATION,Lund,-,SWE,X,0,55.7,13.2,1.0,50.0\\nnothing else\\n"`, /a\.epw/], ["b.csv", `""`, /b\.csv/], ["c.txt", `"hello"`, /c\.txt/],
      ["<img src=x onerror=alert(1)>.csv", `"x"`, /img/], ["d.epw", `new Uint8Array(1000)`, /d\.epw/]]);
    assert.equal(await page.evaluate(day), "2015-06-21");
    assert.match(await page.evaluate(drop("lund.epw", epw)), /^lund\.epw: weather of 2001-06-01 to 2001-12-01\. Press/);
    assert.deepEqual(await page.evaluate(`[document.getElementById('latitude').value, ${day}]`), ["55.7", "2001-06-21"]);
    assert.match(await page.evaluate(drop("june.csv", csv)), /^june\.csv: weather of 1997-06-06 to 1997-06-18\. Press/);
    assert.equal(await page.evaluate(day), "1997-06-06");
    await page.evaluate(choose("date", "1997-06-18"));  // whose last hour is the file's twelfth
    await page.evaluate(keepDownloads);
    await page.evaluate("document.getElementById('day').click()");
    await page.until(done);
    assert.match(await page.evaluate(text("verdict")), /^The day is there/);
    await page.evaluate(choose("time", 1380));
    await page.until(`/^Hour that ends at 1997-06-18 12:00, june\\.csv\\./.test(${text("numbers")})`);
    await page.evaluate("document.getElementById('npy').click()");
    assert.equal(await page.evaluate("saved.name"), "utci_1997-06-18_1200.npy");
    // Another day needs another computation; what is in the picture keeps its date.
    await page.evaluate(choose("date", "1997-06-10"));
    await page.until(`/^Press “Compute the day’s warmth”/.test(${text("verdict")})`);
    await page.evaluate("document.getElementById('npy').click()");
    assert.equal(await page.evaluate("saved.name"), "utci_1997-06-18_1200.npy");
  }));

test("a folder of files: what is no height of the city is named", () =>
  visit(small, {}, async (page) => {
    const both = (a, b) => page.evaluate(`(async () => {
      const transfer = new DataTransfer(), bytes = await ${npy(20, block(20))}, before = document.body.dataset.files;
      for (const name of ["${a}", "${b}"]) transfer.items.add(new File([bytes], name));
      document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true, bubbles: true }));
      while (document.body.dataset.files === before) await new Promise((go) => setTimeout(go, 0));
      return ${text("verdict")};
    })()`);
    assert.match(await both("dsm.npy", "landcover.npy"), /^landcover\.npy: this page does not use land cover/);
    assert.match(await both("dsm_old.npy", "dsm_new.npy"), /^dsm_old\.npy and dsm_new\.npy are both taken for the surface: drop one/);
    assert.match(await both("dsm.npy", "dem.npy"), /^dsm\.npy: 20 × 20/);
    await refusesHugeFile(page, "dsm.tif");
  }));

test("an example that is refused leaves the files' city and its place on the map", () =>
  visit(small, {}, async (page) => {
    const map = { pixelSize: 2, x: 319000, y: 6400000, epsg: 3006 };
    assert.match(await page.evaluate(dropFile("DSM.tif", tif(40, block(40), map))), /^DSM.tif: 40 × 40/);
    await page.evaluate(choose("layer", "heights"));
    await page.until(`/Heights of ground/.test(${text("about")})`);
    await page.evaluate(choose("example", "7"));  // none of the list: a city of no rows
    await page.until(`document.getElementById('verdict').className === "verdict bad"`);
    assert.match(await page.evaluate(text("verdict")), /rows 0/);
    await page.evaluate("document.getElementById('view').focus()");
    await page.key("ArrowDown");
    assert.match(await page.evaluate(value), /^10\.0 m at 319041\.0 m east, 6399957\.0 m north/);
    await page.evaluate(choose("canopy", "absolute"));
    await page.until(`/^DSM.tif: 40 × 40/.test(${text("verdict")})`);
  }));

test("a slider that moves on asks for the shadows of its last place", () =>
  visit(small, {}, async (page) => {
    const asked = await page.evaluate(`(async () => {
      const { alone } = await import("./page.js"), json = JSON.stringify, time = document.getElementById("time");
      let asked = 0;
      JSON.stringify = (value, ...rest) => {
        asked += value?.call === "city_shadows";
        return json(value, ...rest);
      };
      for (let minutes = 400; minutes <= 720; minutes += 5) {
        time.value = minutes;
        time.dispatchEvent(new Event("input"));
      }
      await alone(() => {});
      return asked;
    })()`);
    assert.equal(asked, 1);
    assert.match(await page.evaluate(text("numbers")), /^Sun at 5\d/);
  }));

test("downloads hold what the picture shows", () =>
  visit(small, {}, async (page) => {
    await page.evaluate(keepDownloads);
    await page.evaluate(choose("layer", "heights"));
    await page.until(`/Heights of ground/.test(${text("about")})`);
    const highest = Number(/… (\S+) m/.exec(await page.evaluate(text("range")))[1]);
    await page.evaluate("document.getElementById('tif').click()");
    assert.match(await page.evaluate("saved.name"), /^heights_2015-06-21_1000\.tif$/);
    const read = await page.evaluate(`(async () => { const { readTiff } = await import("./city/geotiff.js"); const g = await readTiff(new Uint8Array(await saved.blob.arrayBuffer()), "x"); return [g.rows, g.cols, g.pixelSize, g.values.reduce((a, b) => Math.max(a, b))]; })()`);
    assert.deepEqual(read.slice(0, 3), [96, 96, 1]);
    assert.ok(Math.abs(read[3] - highest) < 0.01 * highest, `${read[3]} m, ${highest} in the page`);
    await page.evaluate("document.getElementById('npy').click()");
    assert.equal(await page.evaluate("saved.blob.size"), 128 + 4 * 96 * 96);
    await page.evaluate("document.getElementById('png').click()");
    await page.until("/png$/.test(saved.name) && saved.blob.type === 'image/png'");
  }));

test("what is no city is a sentence, and the city before it stays", () =>
  visit(small, {}, async (page) => {
    await refuses(page, [["dsm.tif", `""`, /dsm\.tif/], ["dsm.npy", `"hello"`, /no height grid/], ["<img src=x onerror=alert(1)>.tif", `"II*"`, /img/], ["../../dsm.tif", `new Uint8Array([73, 73, 42, 0, 255, 255, 255, 127, 0, 0])`, /too early/],
      ["big_dsm.tif", `new Uint8Array(200000001)`, /200 MB/], ["dem.asc", `"ncols 2\\nnrows 1\\ncellsize 1\\n1 2"`, /surface is missing/], ["dsm.asc", `"ncols 2\\nnrows 1\\ncellsize 1\\n1"`, /1 numbers/],
      ["dsm.png", `new Uint8Array([0x89, 0x50, 0x4e, 0x47])`, /no height grid/], ["dsm_cut.tif", `(await ${tif(20, block(20), { pixelSize: 1 })}).slice(0, 700)`, /too early/],
      ["far_dsm.npy", "await " + npy(8, "new Float32Array(64).map((_, k) => 1e6 * k)"), /^1e\+06 at row 0, column 1 \[argument dsm\]: expected heights in metres$/]]);
    assert.equal(await page.evaluate(`${text("clock")}`), "10:00");
    await page.evaluate(choose("time", 720));
    await page.until(`/Sun at 5\\d/.test(${text("numbers")})`);
  }));

test(`${drops} damaged files never break the page`, (t) =>
  visit(small, {}, async (page) => {
    await page.evaluate(`(async () => { window.seeds = [["dsm.tif", await ${tif(12, block(12), { pixelSize: 2, x: 319000, y: 6400000, epsg: 3006 })}], ["dsm.npy", await ${npy(12, block(12))}],
      ["dsm.asc", "ncols 3\\nnrows 2\\nxllcorner 0\\nyllcorner 0\\ncellsize 5\\nNODATA_value -9\\n1 2 3\\n-9 5 6\\n"], ["a.epw", ${epw}], ["a.csv", (${csv}).slice(0, 300)]]; })()`);
    const counted = await damage(page, "window.seeds");
    assert.ok(counted.read > drops / 50 && counted.refused > drops / 5, JSON.stringify(counted));
    t.diagnostic(JSON.stringify(counted));
    assert.match(await page.evaluate(dropFile("good_dsm.npy", npy(20, block(20)))), /^good_dsm.npy: 20 × 20/);
  }));

test("a graphics device that is lost falls back to the processor, and the page counts it", () =>
  withGpuBrowser((gpu) => visit(small, {}, async (page) => {
    const before = await page.evaluate(sunny);
    await page.evaluate(loseDevice);
    await page.evaluate(choose("device", "webgpu,cpu"));
    await page.until(`/Fallbacks: urban\\.shadow 1\\./.test(${text("numbers")})`);
    assert.match(await page.evaluate(text("notes")), /^\[GPU\] urban\.shadow failed: .*CPU fallback\.$/);
    assert.equal(await page.evaluate(sunny), before);
  }, gpu)));

test("with the processor four times as slow the page still answers", () =>
  visit(small, {}, async (page) => {
    await page.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await page.evaluate("document.getElementById('day').click(); setTimeout(() => document.getElementById('stop').click(), 100)");
    await page.until(`${text("verdict")} === 'Stopped.'`);
    await page.evaluate(choose("time", 900));
    await page.until(`/^Press/.test(${text("verdict")}) || /ends at/.test(${text("numbers")})`);
  }));
