// Meshes to begin with, as the text of OBJ files.

function obj(vertices, faces) {
  return new TextEncoder().encode(vertices.map((p) => `v ${p.join(" ")}\n`).join("") + faces.map((f) => `f ${f.map((v) => v + 1).join(" ")}\n`).join(""));
}
/** A grid of rows by columns; `closed` where the last column meets the first. */
function grid(rows, columns, closed, point) {
  const vertices = [], faces = [], across = closed ? columns : columns - 1;
  for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) vertices.push(point(r / (rows - 1), c / across));
  for (let r = 0; r + 1 < rows; ++r)
    for (let c = 0; c < across; ++c) {
      const a = r * columns + c, b = r * columns + ((c + 1) % columns), d = a + columns, e = b + columns;
      faces.push([a, b, d], [b, e, d]);
    }
  return obj(vertices, faces);
}
const bump = (u, v) => 0.06 * Math.sin(9 * Math.PI * u) * Math.sin(11 * Math.PI * v);

export const examples = {
  "Tube, 1,600 vertices": ["tube.obj", () => grid(50, 32, true, (u, v) => [0.35 * Math.cos(2 * Math.PI * v), 2 * u, 0.35 * Math.sin(2 * Math.PI * v)])],
  "Wavy sheet, 2,500 vertices": ["sheet.obj", () => grid(50, 50, false, (u, v) => [2 * v, bump(u, v), 2 * u])],
  "Wavy sheet, 10,000 vertices": ["sheet.obj", () => grid(100, 100, false, (u, v) => [2 * v, bump(u, v), 2 * u])],
  "Vase, 3,000 vertices": ["vase.obj", () => grid(60, 50, true, (u, v) => {
    const r = 0.5 + 0.2 * Math.sin(5 * u) + 0.3 * bump(u, v);
    return [r * Math.cos(2 * Math.PI * v), 1.6 * u, r * Math.sin(2 * Math.PI * v)];
  })],
};
