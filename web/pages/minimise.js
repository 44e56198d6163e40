// Levenberg-Marquardt for a few residuals in two variables, with the kernel's exact derivatives.

/** The points from `start` to a minimum of the sum of squares, each with its cost. `residual` gives values and derivatives by
 * at(). */
export async function minimise(residual, start, mostSteps = 60) {
  const count = residual.values.length;
  const state = async ([x, y]) => {
    const rows = (await residual.at([[x], [y]])).map((row) => row[0]);
    const values = rows.slice(0, count), slopes = values.map((_, r) => [rows[count + 2 * r], rows[count + 2 * r + 1]]);
    return { point: [x, y], cost: values.reduce((sum, v) => sum + v * v, 0), values, slopes };
  };
  let now = await state(start), damping = 1e-3;
  const path = [now];
  for (let tries = 0; tries < mostSteps && Number.isFinite(now.cost); ++tries) {
    let [a, b, c, gx, gy] = [0, 0, 0, 0, 0];
    now.slopes.forEach(([dx, dy], r) => {
      a += dx * dx;
      b += dx * dy;
      c += dy * dy;
      gx += dx * now.values[r];
      gy += dy * now.values[r];
    });
    if (Math.hypot(gx, gy) < 1e-12 * (1 + now.cost)) break;
    const ax = a + damping * Math.max(a, 1e-9), cy = c + damping * Math.max(c, 1e-9), det = ax * cy - b * b;
    const step = [-(cy * gx - b * gy) / det, -(ax * gy - b * gx) / det];
    const next = await state([now.point[0] + step[0], now.point[1] + step[1]]);
    if (next.cost < now.cost) {
      damping = Math.max(damping / 8, 1e-12);
      path.push((now = next));
    } else {
      damping *= 6;
      if (damping > 1e12) break;
    }
  }
  return path;
}
