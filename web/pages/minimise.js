// Levenberg-Marquardt for a few residuals in a few variables, with the kernel's exact derivatives.

/** The solution of A x = b for a positive definite A of rows; undefined where it is none. By Cholesky's factors, in place. */
function solve(rows, b) {
  const n = b.length, x = [...b];
  for (let i = 0; i < n; ++i) {
    for (let j = 0; j <= i; ++j) {
      let sum = rows[i][j];
      for (let k = 0; k < j; ++k) sum -= rows[i][k] * rows[j][k];
      if (i === j && !(sum > 0)) return undefined;
      rows[i][j] = i === j ? Math.sqrt(sum) : sum / rows[j][j];
    }
    for (let k = 0; k < i; ++k) x[i] -= rows[i][k] * x[k];
    x[i] /= rows[i][i];
  }
  for (let i = n - 1; i >= 0; --i) {
    for (let k = i + 1; k < n; ++k) x[i] -= rows[k][i] * x[k];
    x[i] /= rows[i][i];
  }
  return x;
}

/** Residuals of several texts in the same variables. They have a device of their own: it keeps compiled kernels until it ends. */
export async function residualsOf(lockstep, variables, texts) {
  const device = await lockstep.open("cpu");
  try {
    const all = texts.map((lines) => lockstep.residual(device, variables, lines));
    return { all, dispose: () => [...all, device].forEach((one) => one.dispose()) };
  } catch (error) {
    device.dispose();
    throw error;
  }
}

/** The points from `start` to a minimum of the sum of squares, each with its cost. `residual` gives values and derivatives by at().
 * Only the first `free` variables move. */
export async function minimise(residual, start, { free = start.length, mostSteps = 60 } = {}) {
  const count = residual.values.length, all = start.length;
  const state = async (point) => {
    const rows = (await residual.at(point.map((x) => [x]))).map((row) => row[0]);
    const values = rows.slice(0, count), slopes = values.map((_, r) => rows.slice(count + all * r, count + all * r + free));
    return { point, cost: values.reduce((sum, v) => sum + v * v, 0), values, slopes };
  };
  let now = await state(start), damping = 1e-3;
  const path = [now];
  for (let tries = 0; tries < mostSteps && Number.isFinite(now.cost); ++tries) {
    const normal = Array.from({ length: free }, () => Array(free).fill(0)), gradient = Array(free).fill(0);
    now.slopes.forEach((slope, r) => slope.forEach((d, i) => {
      gradient[i] -= d * now.values[r];
      for (let j = 0; j <= i; ++j) normal[i][j] += d * slope[j];
    }));
    if (Math.hypot(...gradient) < 1e-12 * (1 + now.cost)) break;
    normal.forEach((row, i) => { row[i] += damping * Math.max(row[i], 1e-9); });
    const step = solve(normal, gradient), next = step && (await state(now.point.map((x, i) => (i < free ? x + step[i] : x))));
    if (next?.cost < now.cost) {
      damping = Math.max(damping / 8, 1e-12);
      path.push((now = next));
    } else {
      damping *= 6;
      if (damping > 1e12) break;
    }
  }
  return path;
}
