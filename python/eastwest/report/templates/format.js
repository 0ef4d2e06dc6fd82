/* Texts of numbers and times, by the rules of eastwest/units.py and report/draw.py. */
const DASH = "–";

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString("en-US");
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(size)));
  const text = value.toFixed(Math.min(decimals, 20));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function scaled(value, scale) {
  for (const [factor, unit] of scale) {
    if (Math.abs(value) >= factor * 0.9995) return digits(value / factor) + " " + unit;
  }
  const [factor, unit] = scale[scale.length - 1];
  return digits(value / factor) + " " + unit;
}

const SIZES = [[1e15, "PB"], [1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const RATES = [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
const ENERGIES = [[1e6, "MJ"], [1e3, "kJ"], [1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]];
const POWERS = [[1e6, "MW"], [1e3, "kW"], [1, "W"], [1e-3, "mW"], [1e-6, "µW"]];
const SPANS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const LONG_SPANS = [[86399.5, 3600, 24, "d", "h"], [3599.5, 60, 60, "h", "min"], [120, 1, 60, "min", "s"]];

function span(seconds) {
  if (seconds === 0) return "0 s";
  for (const [least, small, per, big, little] of LONG_SPANS) {
    if (Math.abs(seconds) >= least) {
      const whole = Math.round(seconds / small);
      const rest = whole % per ? " " + (whole % per) + " " + little : "";
      return Math.floor(whole / per) + " " + big + rest;
    }
  }
  return scaled(seconds, SPANS);
}

const WRITE = {
  count: (v) => (Math.abs(v) < 1e6 ? digits(v) : scaled(v, [[1e9, "billion"], [1e6, "million"]])),
  percent: (v) => digits(100 * v) + " %",
  rate: (v) => scaled(v, RATES),
  size: (v) => scaled(v, SIZES),
  span,
  energy: (v) => (v === 0 ? "0 J" : scaled(v, ENERGIES)),
  power: (v) => (v === 0 ? "0 W" : scaled(v, POWERS)),
  times: (v) => WRITE.count(v) + " ×",
  nines: (v) => Number((100 * v).toPrecision(7)) + " %",
};

function write(unit, value) {
  return value === null || value === undefined || !isFinite(value) ? DASH : WRITE[unit](value);
}

/* A time on an axis of simulated time that ends at `end`; `step` sets its precision. */
function clock(seconds, end, step) {
  const decimals = (unit) => Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit) - 1e-6)));
  const trim = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (end < 180) {
    const [unit, name] = end >= 2 ? [1, "s"] : end >= 2e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
    return Math.abs(seconds) < step / 1000 ? "0" : trim((seconds / unit).toFixed(decimals(unit))) + " " + name;
  }
  const power = 10 ** decimals(1);
  let rest = Math.round(seconds * power);
  const hours = Math.floor(rest / (3600 * power));
  rest -= hours * 3600 * power;
  const minutes = Math.floor(rest / (60 * power));
  rest -= minutes * 60 * power;
  const parts = [];
  if (hours) parts.push(hours + " h");
  if (minutes) parts.push(minutes + " min");
  if (rest) parts.push(trim((rest / power).toFixed(decimals(1))) + " s");
  return parts.join(" ") || "0";
}

const LONG_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];

function niceStep(width, most) {
  const raw = width / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  for (const step of [1, 2, 5, 10]) if (step * power >= raw * 0.999999) return step * power;
  return raw;
}

function timeStep(width, most) {
  const raw = width / most;
  if (raw <= 1) return niceStep(width, most);
  for (const step of LONG_STEPS) if (step >= raw * 0.999999) return step;
  return 86400 * Math.max(1, niceStep(width / 86400, most));
}
