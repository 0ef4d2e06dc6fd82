/* Editing of a small fabric by hand: nodes and cables are added, changed and removed. Each edit
   writes the topology file beside the scenario; undo writes the one before. */
class FabricEditor {
  /* `apply` writes a topology and returns whether it could, `restore` sets the text of the scenario,
     `ready` returns whether the scenario is in the folder, `text` returns its text. */
  constructor({ apply, restore, ready, text }) {
    Object.assign(this, { restore, ready, text });
    this.panel = document.getElementById("edit-panel");
    this.button = document.getElementById("edit");
    this.apply = apply;
    this.undone = [];
    this.first = null;
    this.button.addEventListener("click", () => this.start(this.panel.hidden));
    window.addEventListener("studio-node", (event) => this.pick(event.detail));
  }

  set(fabric) {
    this.fabric = fabric;
    this.topology = fabric ? fabric.topology : null;
    this.button.disabled = !this.topology;
    this.button.title = this.topology ? "" : "Only fabrics of at most 64 nodes can be edited by hand";
    if (!this.topology) this.open(false);
    else if (!this.panel.hidden) this.show();
  }

  /* Opens the panel; a shipped scenario is saved as a copy first. */
  async start(visible) {
    if (visible && !(await this.ready())) return;
    this.open(visible);
  }

  open(visible) {
    this.panel.hidden = !visible;
    this.button.setAttribute("aria-expanded", String(visible));
    this.first = null;
    if (visible) this.show();
  }

  names() {
    return [...this.topology.hosts, ...this.topology.switches];
  }

  /* Shows the lists and forms of the panel. */
  show() {
    const { cables } = this.topology;
    const form = (title, ...parts) => {
      const row = element("div", { class: "row" });
      row.append(element("strong", {}, title), ...parts);
      return row;
    };
    const button = (text, act) => {
      const made = element("button", { type: "button" }, text);
      made.addEventListener("click", act);
      return made;
    };
    const choice = (label, values, texts) => {
      const made = element("select", { "aria-label": label });
      values.forEach((value, n) => made.append(element("option", { value }, texts ? texts[n] : value)));
      return made;
    };
    const names = this.names();
    const host = element("input", { type: "text", size: "10", "aria-label": "Name of the new node", value: this.fresh("h") });
    const from = choice("One end of the new cable", names);
    const to = choice("Other end of the new cable", this.topology.switches);
    const rate = element("input", { type: "text", size: "10", "aria-label": "Rate of the new cable", value: cables.length ? write("rate", cables[0].rate_bps) : "10 Gbit/s" });
    const delay = element("input", { type: "text", size: "8", "aria-label": "Delay of the new cable", value: cables.length ? write("span", cables[0].delay_us / 1e6) : "5 µs" });
    const gone = choice("Node to remove", names);
    const cable = choice("Cable", cables.map((_, n) => n), cables.map((c) => c.a + " – " + c.b + ", " + write("rate", c.rate_bps) + ", " + write("span", c.delay_us / 1e6)));
    const newRate = element("input", { type: "text", size: "10", "aria-label": "Rate of the cable" });
    const newDelay = element("input", { type: "text", size: "8", "aria-label": "Delay of the cable" });
    const fill = () => {
      const one = cables[Number(cable.value)];
      if (!one) return;
      newRate.value = write("rate", one.rate_bps);
      newDelay.value = write("span", one.delay_us / 1e6);
    };
    cable.addEventListener("change", fill);
    fill();
    [this.from, this.to] = [from, to];
    const undo = button("Undo", () => this.undo());
    undo.disabled = !this.undone.length;
    this.said = element("p", { class: "small", role: "status" }, "Click two nodes of the drawing to connect them with a cable. The topology file is saved beside the scenario.");
    this.panel.replaceChildren(
      this.said,
      form("New node", host, button("Add host", () => this.addNode("hosts", host.value)), button("Add switch", () => this.addNode("switches", host.value))),
      form("New cable", from, " – ", to, rate, delay, button("Add cable", () => this.addCable(from.value, to.value, rate.value, delay.value))),
      form("Cable", cable, newRate, newDelay, button("Change", () => this.changeCable(Number(cable.value), newRate.value, newDelay.value)), button("Remove cable", () => this.removeCable(Number(cable.value)))),
      form("Node", gone, button("Remove node and its cables", () => this.removeNode(gone.value)), undo),
    );
  }

  /* Name that no node has: the prefix and the next number. */
  fresh(prefix) {
    const names = new Set(this.names());
    let n = 0;
    while (names.has(prefix + n)) n += 1;
    return prefix + n;
  }

  /* A click on a node of the drawing: the second click connects it with the first one. */
  pick(number) {
    if (this.panel.hidden || !this.topology) return;
    const node = this.fabric.nodes[number];
    if (!node || node.members !== 1) return;
    if (this.first === null || this.first === node.name) {
      this.first = node.name;
      window.dispatchEvent(new CustomEvent("studio-end", { detail: number }));
      this.said.textContent = node.name + " is one end. Click the other end of the cable.";
      return;
    }
    const pair = this.topology.switches.includes(node.name) ? [this.first, node.name] : [node.name, this.first];
    this.first = null;
    window.dispatchEvent(new CustomEvent("studio-end", { detail: -1 }));
    this.addCable(...pair, this.panel.querySelector('[aria-label="Rate of the new cable"]').value, this.panel.querySelector('[aria-label="Delay of the new cable"]').value);
  }

  addNode(list, name) {
    const clean = name.trim();
    if (!clean || this.names().includes(clean)) return this.say(clean ? "A node " + clean + " exists. Give the new node another name." : "Give the node a name.");
    // A node without a cable is an error of the topology file, so that it gets its first cable at once.
    const other = this.topology.switches[0];
    const like = this.topology.cables[0] || { rate_bps: 1e10, delay_us: 5 };
    const cables = other ? [...this.topology.cables, { a: clean, b: other, rate_bps: like.rate_bps, delay_us: like.delay_us }] : this.topology.cables;
    this.change({ ...this.topology, [list]: [...this.topology[list], clean], cables });
  }

  addCable(a, b, rate, delay) {
    const cable = this.cable(a, b, rate, delay);
    if (cable) this.change({ ...this.topology, cables: [...this.topology.cables, cable] });
  }

  changeCable(number, rate, delay) {
    const old = this.topology.cables[number];
    const cable = old && this.cable(old.a, old.b, rate, delay);
    if (cable) this.change({ ...this.topology, cables: this.topology.cables.map((each, n) => (n === number ? cable : each)) });
  }

  cable(a, b, rate, delay) {
    const [rate_bps, seconds] = [quantity(rate, RATES), quantity(delay.replace("us", "µs"), SPANS)];
    if (a === b) return void this.say("A cable needs two different ends.");
    if (!(rate_bps > 0)) return void this.say("The rate needs a number and a unit, such as 10 Gbit/s.");
    if (!(seconds >= 0)) return void this.say("The delay needs a number and a unit, such as 5 µs.");
    return { a, b, rate_bps: Math.round(rate_bps), delay_us: Number((seconds * 1e6).toPrecision(12)) };
  }

  removeCable(number) {
    this.change({ ...this.topology, cables: this.topology.cables.filter((_, n) => n !== number) });
  }

  removeNode(name) {
    const without = (list) => list.filter((each) => each !== name);
    this.change({
      hosts: without(this.topology.hosts),
      switches: without(this.topology.switches),
      cables: this.topology.cables.filter((cable) => cable.a !== name && cable.b !== name),
    });
  }

  async change(topology) {
    const before = { topology: this.topology, text: this.text() };
    if (!(await this.apply(topology))) return;
    this.undone.push(before);
    this.topology = topology;
    this.show();
  }

  /* Takes back the last edit: the topology file, if the scenario had one, and the text. */
  async undo() {
    const before = this.undone.pop();
    if (!before) return;
    const own = /^\s*kind\s*=\s*["']graph["']/m.test(before.text);
    if (own && !(await this.apply(before.topology))) return;
    this.topology = before.topology;
    await this.restore(before.text);
    this.show();
  }

  say(text) {
    this.said.textContent = text;
  }
}

/* Value of a text with a number and a unit of a scale of format.js; NaN if it is none. */
function quantity(text, scale) {
  const [, number, unit] = text.trim().match(/^([\d.,]+)\s*(.*)$/) || [];
  const found = scale.find(([, name]) => name === unit);
  return found && number !== undefined ? Number(number.replaceAll(",", "")) * found[0] : NaN;
}
