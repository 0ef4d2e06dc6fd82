/* Sliders: each sets one number of the scenario for the next runs. */

/* Text of a setting with a number in its unit. */
function withUnit(number, unit) {
  const text = String(Number(number.toPrecision(4)));
  return unit ? text + " " + unit : text;
}

class Slider {
  constructor(setting, changed, removed) {
    this.setting = setting;
    this.path = setting.path;
    this.unit = setting.unit || "";
    this.whole = ["count", "whole number", "bytes"].includes(setting.type) || ["B", "packets", "segments"].includes(this.unit);
    const value = Number(setting.number);
    this.low = this.limit(value > 0 ? value / 10 : 0);
    this.high = this.limit(value > 0 ? value * 4 : 10);
    this.value = value;
    this.changed = changed;
    this.box = element("fieldset", { class: "slider" });
    this.box.append(element("legend", {}, this.path));
    this.range = element("input", { type: "range", min: "0", max: "1000", step: "1", "aria-label": this.path });
    this.entry = element("input", { type: "text", size: "12", "aria-label": "Value of " + this.path });
    const ends = element("details", {});
    ends.append(element("summary", {}, "Range"));
    this.from = element("input", { type: "text", size: "8", "aria-label": "Smallest value of " + this.path });
    this.to = element("input", { type: "text", size: "8", "aria-label": "Largest value of " + this.path });
    ends.append(this.from, " to ", this.to, " " + this.unit);
    const keep = element("button", { type: "button" }, "Write into the scenario");
    const remove = element("button", { type: "button", "aria-label": "Remove the slider of " + this.path }, "Remove");
    const row = element("div", { class: "row" });
    row.append(this.entry, keep, remove, ends);
    this.box.append(this.range, row);
    if (setting.doc) this.box.append(element("p", { class: "small" }, setting.doc));
    this.range.addEventListener("input", () => this.slide(false));
    this.range.addEventListener("change", () => this.slide(true));
    this.range.addEventListener("keydown", (event) => this.key(event));
    this.entry.addEventListener("change", () => this.type());
    for (const input of [this.from, this.to]) input.addEventListener("change", () => this.stretch());
    remove.addEventListener("click", () => removed(this));
    keep.addEventListener("click", () => window.dispatchEvent(new CustomEvent("studio-keep", { detail: this })));
    this.show();
  }

  /* The setting and its value, as for --set. */
  get pair() {
    return [this.path, this.given || withUnit(this.value, this.unit)];
  }

  limit(value) {
    const { min, max } = this.setting;
    let within = value;
    if (min !== null && min !== undefined) within = Math.max(within, min);
    if (max !== null && max !== undefined) within = Math.min(within, max);
    return this.whole ? Math.round(within) : within;
  }

  get logarithmic() {
    return this.low > 0 && this.high / this.low > 20;
  }

  valueAt(share) {
    const value = this.logarithmic ? this.low * (this.high / this.low) ** share : this.low + share * (this.high - this.low);
    return this.limit(Number(value.toPrecision(3)));
  }

  share(value) {
    if (this.high <= this.low) return 0;
    return this.logarithmic ? Math.log(value / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low);
  }

  show() {
    this.range.value = Math.round(1000 * Math.max(0, Math.min(1, this.share(this.value))));
    this.entry.value = this.pair[1];
    this.range.setAttribute("aria-valuetext", this.pair[1]);
    this.from.value = this.low;
    this.to.value = this.high;
  }

  slide(final) {
    const value = this.valueAt(Number(this.range.value) / 1000);
    const same = value === this.value;
    this.value = value;
    this.given = "";
    this.entry.value = this.pair[1];
    this.range.setAttribute("aria-valuetext", this.pair[1]);
    if (!same || final) this.changed(final);
  }

  /* Arrow keys change a whole number by 1 (page keys by 10), other numbers by a hundredth of the
     range. The run starts when the keys rest. */
  key(event) {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = this.whole ? this.value + by : this.valueAt(Math.max(0, Math.min(1, this.share(this.value) + by / 100)));
    const value = Math.max(this.low, Math.min(this.high, this.limit(next)));
    if (value === this.value) return;
    this.value = value;
    this.given = "";
    this.show();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.changed(true), 300);
  }

  /* Takes a typed value. With another unit than that of the slider it is used as it was typed. */
  type() {
    const [, number, unit] = this.entry.value.trim().match(/^([+-]?[\d.]+(?:e[+-]?\d+)?)\s*(.*)$/i) || [];
    this.given = "";
    if (number !== undefined && (!unit || unit === this.unit)) {
      this.value = Number(number);
      this.low = Math.min(this.low, this.value);
      this.high = Math.max(this.high, this.value);
      this.show();
    } else {
      this.given = this.entry.value.trim();
    }
    this.changed(true);
  }

  stretch() {
    const [low, high] = [Number(this.from.value), Number(this.to.value)];
    if (isFinite(low) && isFinite(high) && low < high) [this.low, this.high] = [this.limit(low), this.limit(high)];
    this.show();
  }
}
