// Where a projected grid is on the Earth, and where its north points: transverse Mercator on the WGS 84 or GRS 80 ellipsoid, which
// differ by less than a millimetre there, by Krüger's series (C. Karney 2011, doi:10.1007/s00190-011-0445-3, to the fourth order).
const radius = 6378137, flattening = 1 / 298.257223563;

/** Central meridian (degrees), scale, false easting and northing of EPSG codes; undefined for others. */
function projection(epsg) {
  const zone = epsg % 100, utm = { centre: 6 * zone - 183, scale: 0.9996, east: 500000, north: 0 }, family = Math.floor(epsg / 100);
  if (zone >= 1 && zone <= 60 && family === 326) return utm;
  if (zone >= 1 && zone <= 60 && family === 327) return { ...utm, north: 1e7 };
  if (zone >= 28 && zone <= 38 && family === 258) return utm;  // ETRS89
  if (zone >= 1 && zone <= 23 && family === 269) return utm;  // NAD83
  if (zone >= 46 && zone <= 59 && family === 78) return { ...utm, north: 1e7 };  // GDA2020
  return { 3006: { centre: 15, scale: 0.9996, east: 500000, north: 0 }, 2180: { centre: 19, scale: 0.9993, east: 500000, north: -5300000 },
    2193: { centre: 173, scale: 0.9996, east: 1600000, north: 1e7 } }[epsg];
}

/** { latitude, longitude } (degrees) and { convergence }: the grid's north, clockwise from true north; undefined for unknown codes. */
export function placeOf(epsg, x, y) {
  const p = projection(epsg);
  if (!p) return undefined;
  const n = flattening / (2 - flattening), [n2, n3, n4] = [n ** 2, n ** 3, n ** 4], rectifying = (radius / (1 + n)) * (1 + n2 / 4 + n4 / 64);
  const beta = [n / 2 - (2 * n2) / 3 + (37 * n3) / 96 - n4 / 360, n2 / 48 + n3 / 15 - (437 * n4) / 1440, (17 * n3) / 480 - (37 * n4) / 840, (4397 * n4) / 161280];
  const xi = (y - p.north) / (p.scale * rectifying), eta = (x - p.east) / (p.scale * rectifying);
  let [xs, es, xd, ed] = [xi, eta, 1, 0];  // on the sphere, and their derivative
  beta.forEach((b, k) => {
    const j = 2 * (k + 1), [s, c, sh, ch] = [Math.sin(j * xi), Math.cos(j * xi), Math.sinh(j * eta), Math.cosh(j * eta)];
    xs -= b * s * ch;
    es -= b * c * sh;
    xd -= j * b * c * ch;
    ed += j * b * s * sh;
  });
  const e = Math.sqrt(flattening * (2 - flattening)), tau0 = Math.sin(xs) / Math.hypot(Math.sinh(es), Math.cos(xs));
  let tau = tau0;  // the latitude's tangent, from that of the conformal latitude
  for (let k = 0; k < 5; ++k) {
    const sigma = Math.sinh(e * Math.atanh((e * tau) / Math.hypot(1, tau))), next = tau * Math.hypot(1, sigma) - sigma * Math.hypot(1, tau);
    tau += ((tau0 - next) / Math.hypot(1, next)) * ((1 + (1 - e * e) * tau * tau) / ((1 - e * e) * Math.hypot(1, tau)));
  }
  const degrees = 180 / Math.PI, latitude = Math.atan(tau) * degrees, away = Math.atan2(Math.sinh(es), Math.cos(xs));
  const convergence = (Math.atan2(ed, xd) + Math.atan(Math.tan(xs) * Math.tanh(es))) * degrees;
  return { latitude, longitude: p.centre + away * degrees, convergence };
}
