// A day of weather to begin with, and what a file of weather says of its place.

/** A clear day as CSV: hours of one date, their ends in the first column. `altitude` gives the sun's (degrees) at a local time;
 * radiation by B. Haurwitz (1945). */
export function clearDay(date, altitude) {
  const rows = ["time,Ta,RH,wind,Kglobal"], text = (minutes) => new Date(Date.parse(`${date}T00:00Z`) + 6e4 * minutes).toISOString().slice(0, 16);
  for (let hour = 1; hour <= 24; ++hour) {
    const up = Math.sin((altitude(text(60 * hour - 30)) * Math.PI) / 180), air = 19 + 6 * Math.sin((Math.PI * (hour - 9.5)) / 12);
    rows.push([text(60 * hour), air.toFixed(1), Math.round(75 - 2 * (air - 13)), 2.5, up > 0 ? Math.round(1098 * up * Math.exp(-0.057 / up)) : 0].join());
  }
  return rows.join("\n") + "\n";
}

/** Place and clock that an EPW file names in its first line. */
export function placeOfWeather(text) {
  const [first] = text.slice(0, 1000).split(/\r?\n/), fields = first.split(",");
  if (!first.startsWith("LOCATION") || fields.length < 9) return undefined;
  const [latitude, longitude, offset] = fields.slice(6, 9).map(Number);
  return [latitude, longitude, offset].every(Number.isFinite) ? { latitude, longitude, offset } : undefined;
}
