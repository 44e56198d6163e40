// Grids of numbers as pictures: colours by value, none where a value is missing.
const palettes = {
  signed: { light: ["#123f7a", "#5b93c9", "#f4f3ef", "#dd8a6b", "#8f1525"], dark: ["#9fd0ff", "#3b74b8", "#12171a", "#b5543c", "#ffc2a3"] },
  shade: { light: ["#3c4a5c", "#f2d98b"], dark: ["#222b38", "#e8cd78"] },
  share: { light: ["#2b2233", "#7a4a72", "#d98b6a", "#fbe9b7"] },
  heat: { light: ["#2c4c9c", "#5fa4c8", "#e9e6b6", "#e8903f", "#9e1f1f"] },
  heights: { light: ["#2f4a3c", "#7f9a6a", "#cbbf95", "#f4f1ea"] },
};
const dark = matchMedia("(prefers-color-scheme: dark)");

const tables = new Map();
function tableOf(name) {
  const stops = (dark.matches && palettes[name].dark) || palettes[name].light, key = stops.join();
  if (!tables.has(key)) {
    const rgb = stops.map((c) => [1, 3, 5].map((k) => parseInt(c.slice(k, k + 2), 16))), table = new Uint32Array(256);
    for (let k = 0; k < 256; ++k) {
      const at = (k / 255) * (rgb.length - 1), low = Math.min(Math.floor(at), rgb.length - 2), [r, g, b] = rgb[low].map((v, c) => Math.round(v + (at - low) * (rgb[low + 1][c] - v)));
      table[k] = (255 << 24) | (b << 16) | (g << 8) | r;
    }
    tables.set(key, table);
  }
  return tables.get(key);
}

/** Draws rows of values between `low` and `high`; `up`: the first row is the lowest; where `ink` is 1 the colour is darker. The
 * canvas takes the grid's size. */
export function drawField(canvas, values, [rows, cols], { palette, low, high, up = false, ink }) {
  if (canvas.width !== cols || canvas.height !== rows) [canvas.width, canvas.height] = [cols, rows];
  const context = canvas.getContext("2d"), image = context.createImageData(cols, rows), pixels = new Uint32Array(image.data.buffer);
  const table = tableOf(palette), scale = 255 / (high - low || 1);
  for (let row = 0; row < rows; ++row) {
    const to = (up ? rows - 1 - row : row) * cols, from = row * cols;
    for (let col = 0; col < cols; ++col) {
      const value = values[from + col];
      if (value === value) pixels[to + col] = table[Math.max(0, Math.min(255, (value - low) * scale)) | 0];
    }
  }
  if (ink) for (let k = 0; k < rows * cols; ++k) if (ink[k]) for (let c = 0; c < 3; ++c) image.data[4 * k + c] *= 0.55;
  context.putImageData(image, 0, 0);
}
/** The scale of a picture, for a canvas beside it. */
export function drawScale(canvas, { palette, low, high, unit }) {
  const values = Float32Array.from({ length: 256 }, (_, k) => k);
  drawField(canvas, values, [1, 256], { palette, low: 0, high: 255 });
  canvas.setAttribute("aria-label", `Colours from ${low} to ${high} ${unit}`);
}
export const onScheme = (draw) => dark.addEventListener("change", draw);
