/* The lines of a drawing of the fabric: their colours by utilisation, and the marks of drops. */
class Edges {
  constructor(figure) {
    this.all = [...figure.querySelectorAll(".edge")];
    this.texts = this.all.map((edge) => edge.querySelector("title"));
    this.losses = figure.querySelector(".losses");
    this.ends = this.all.map((edge) => edge.getAttribute("d").match(/-?[\d.]+/g).map(Number));
  }

  /* Colours the lines; `used` returns the utilisation (0 to 1) of a line, `text` its tooltip. */
  paint(used, text) {
    this.all.forEach((edge, e) => {
      const level = Math.min(9, Math.round(9 * Math.sqrt(used(e))));
      const kept = ["chosen", "near"].filter((name) => edge.classList.contains(name)).map((name) => " " + name).join("");
      edge.setAttribute("class", "edge u" + level + kept);
      this.texts[e].textContent = text(e);
    });
  }

  /* Point of a line at a share of its length, from its sender (0) to its receiver (1). */
  at(e, share) {
    const [x1, y1, x2, y2] = this.ends[e];
    return [x1 + (x2 - x1) * share, y1 + (y2 - y1) * share];
  }

  /* Marks the lines for which `lost` is above 0. */
  markLosses(lost) {
    const marks = [];
    this.all.forEach((_, e) => {
      if (!lost(e)) return;
      const [x, y] = this.at(e, 0.36);
      marks.push(svgElement("path", { class: "loss", d: "M" + x + " " + (y - 5) + "l5 9h-10z" }));
    });
    this.losses.replaceChildren(...marks);
  }
}
