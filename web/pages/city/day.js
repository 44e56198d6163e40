// A day of weather to begin with, and the hours of a day that a file of weather covers.

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

const shifted = (time, minutes) => new Date(Date.parse(`${time.padEnd(16, "T00:00")}Z`) + 6e4 * minutes).toISOString().slice(0, 16);

/** The first and the last day (2015-06-21) that a file of weather covers; an hour that ends at its midnight is no day. */
export function daysOf({ first, last }) {
  const [low, high] = [shifted(first, 59), shifted(last, -1)].map((time) => time.slice(0, 10));
  return [low < high ? low : high, high];
}
/** A day of the file for a date: the date itself, or its month and day in another year, or the first. */
export function nearestDay(date, about) {
  const [low, high] = daysOf(about), others = [low, high].map((day) => day.slice(0, 4) + date.slice(4).replace("-02-29", "-02-28"));
  return [date, ...others].find((day) => low <= day && day <= high) ?? low;
}
/** Ends of the first and the last hour of a date, within those of the file. */
export function hoursOf(date, { first, last } = {}) {
  const [start, end] = [shifted(date, 60), shifted(date, 1440)];
  return { start: first > start ? first : start, end: last < end ? last : end };
}
