// Formats numbers and times for people.

const kUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three significant digits. */
export function digitsOf(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

export function bytes(value) {
  let unit = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && unit + 1 < kUnits.length) {
    left /= 1024;
    unit += 1;
  }
  return `${digitsOf(left)} ${kUnits[unit]}`;
}

/** 12,345,678 */
export function count(value) {
  return Math.round(value).toLocaleString("en");
}

/** 1.23 M, for places with little room. */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${digitsOf(value / 1e9)} G`;
  if (size >= 1e6) return `${digitsOf(value / 1e6)} M`;
  if (size >= 1e5) return `${digitsOf(value / 1e3)} k`;
  if (size >= 1e3) return count(value);
  return digitsOf(value);
}

/** A metric of the trainer, with four significant digits. */
export function metric(value) {
  return value === null ? "not known" : String(Number(value.toPrecision(4)));
}

/** Of which weights an evaluation says something, if they may have seen later epochs. */
export function laterText({ records_later: later }, overlaps) {
  const records = plural(later, "record");
  return overlaps ? `while up to ${records} of later epochs were trained` : `measured again, by weights that may have seen ${records} of later epochs`;
}

export function percent(part, whole) {
  if (!(whole > 0)) return "0 %";
  const value = (100 * part) / whole;
  // It shows 100 % only if nothing is left.
  const floor = Math.floor(value * 10) / 10;
  return value >= 100 ? "100 %" : `${floor.toFixed(1)} %`;
}

/** 850 ms, 12.3 s, 4 min 5 s, 3 h 20 min, 2 d 4 h. */
export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "unknown";
  if (value > 0 && value < 1) return `${Math.round(1000 * value)} ms`;
  if (value < 60) return `${Number.isInteger(value) ? value : value.toFixed(value < 10 ? 1 : 0)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(value / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(value / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The same for an estimate, rounded to what can be known: 45 s, 1 min 30 s, 17 min. */
export function roughly(value) {
  if (!(value >= 60)) return seconds(Math.ceil(value / 5) * 5);
  if (value < 595) return seconds(Math.round(value / 10) * 10);
  return value < 3570 ? `${Math.round(value / 60)} min` : seconds(value);
}

/** Local time of day, with the date unless it is today. */
export function time(wallUs) {
  const at = new Date(wallUs / 1000);
  const clock = at.toLocaleTimeString([], { hour12: false });
  return at.toDateString() === new Date().toDateString() ? clock : `${dateOf(at)} ${clock}`;
}

function dateOf(at) {
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export function cores(value) {
  return `${digitsOf(value)} ${value === 1 ? "core" : "cores"}`;
}

/** A figure with its unit from the REST interface. */
export function figure(value, unit) {
  if (value === null || value === undefined) return "not known";
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${bytes(value)}/s`;
    case "s":
    case "seconds":
      return seconds(value);
    case "us":
      return seconds(value / 1e6);
    case "cores":
    case "cpus":
      return cores(value);
    case "ratio":
      return `${digitsOf(100 * value)} %`;
    case "":
      return short(value);
    default:
      return `${short(value)} ${unit}`;
  }
}

/** Formats a field by the unit at the end of its name, such as memory_bytes or cooldown_s. */
export function field(name, value) {
  const units = [["_bytes", "bytes"], ["_seconds", "s"], ["_s", "s"], ["_us", "us"], ["_ratio", "ratio"]];
  for (const [end, unit] of units) {
    if (name.endsWith(end)) {
      return { name: words(name.slice(0, -end.length)), text: figure(value, unit) };
    }
  }
  if (name === "cpus") return { name: "CPU", text: figure(value, "cores") };
  return { name: words(name), text: figure(value, "") };
}

/** The amount of a field of `before` or `after`. A limit of 0 means that there is no limit. */
export function amount(name, value) {
  const isLimit = name === "memory_bytes" || name === "cpus";
  return isLimit && value === 0 ? "not limited" : field(name, value).text;
}

export function words(name) {
  return name.replaceAll("_", " ").replaceAll("-", " ");
}

export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
