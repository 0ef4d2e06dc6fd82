/* The editor of the scenario: a text area over its coloured copy, with completion at the cursor. */
const TOKENS = /(#[^\n]*)|(^\s*\[\[?[^\]\n]*\]?\]?)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?)|([A-Za-z0-9_.\-]+(?=\s*=))|(\b(?:true|false)\b|[+-]?\b\d[\d_.eE+\-]*\b)/gm;
const CLASSES = ["comment", "header", "string", "key", "number"];

/* Number of characters (code points) before an offset in UTF-16 units, and the reverse. */
function characters(text, units) {
  return [...text.slice(0, units)].length;
}

function unitsOf(text, count) {
  return [...text].slice(0, count).join("").length;
}

class Editor {
  constructor(changed, moved) {
    this.area = document.getElementById("text");
    this.copy = document.querySelector(".editor .paint");
    this.list = document.getElementById("completion");
    this.changed = changed;
    this.moved = moved;
    this.bad = new Set();
    this.items = [];
    this.chosen = -1;
    this.asked = 0;
    this.shownFor = { text: "", offset: 0 };
    this.area.addEventListener("input", (event) => {
      this.paint();
      this.changed();
      // An undone edit can be out of view, where a list would make the editor scroll.
      if (String(event.inputType).startsWith("history")) this.close();
      else this.maybeComplete();
    });
    this.area.addEventListener("scroll", () => this.scroll());
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    // A list belongs to one place: it closes when the cursor leaves that place without an edit.
    document.addEventListener("selectionchange", () => {
      if (!this.list.hidden && this.text === this.shownFor.text && this.offset !== this.shownFor.offset) this.close();
    });
    for (const kind of ["keyup", "click", "focus"]) this.area.addEventListener(kind, () => this.moved());
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const option = event.target.closest("li");
      if (option) this.accept(Number(option.dataset.number));
    });
  }

  get text() {
    return this.area.value;
  }

  /* Line of the cursor, from 1. */
  get line() {
    return this.area.value.slice(0, this.area.selectionStart).split("\n").length;
  }

  /* Position of the cursor in characters. */
  get offset() {
    return characters(this.area.value, this.area.selectionStart);
  }

  set(text) {
    this.area.value = text;
    this.paint();
  }

  /* Replaces the text between two offsets in UTF-16 units; the browser can undo this. */
  replace(start, end, text) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, start, end, "end");
      this.area.dispatchEvent(new Event("input"));
    }
  }

  goTo(line) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1] || "").length);
    this.area.scrollTop = Math.max(0, (line - 4) * this.lineHeight());
  }

  lineHeight() {
    return parseFloat(getComputedStyle(this.area).lineHeight);
  }

  markLines(lines) {
    this.bad = new Set(lines);
    this.paint();
  }

  scroll() {
    this.copy.style.transform = "translate(" + -this.area.scrollLeft + "px," + -this.area.scrollTop + "px)";
    this.close();
  }

  paint() {
    const text = this.area.value;
    const painted = document.createElement("code");
    let line = element("span", { class: "line" });
    let number = 1;
    const mark = () => {
      line.dataset.number = number;
      if (this.bad.has(number)) line.classList.add("bad");
    };
    const put = (piece, css) => {
      piece.split("\n").forEach((part, n) => {
        if (n) {
          line.append("\n");
          mark();
          painted.append(line);
          number += 1;
          line = element("span", { class: "line" });
        }
        if (part) line.append(css ? element("span", { class: css }, part) : part);
      });
    };
    let at = 0;
    for (const found of text.matchAll(TOKENS)) {
      put(text.slice(at, found.index), "");
      const kind = found.slice(1).findIndex((group) => group !== undefined);
      put(found[0], CLASSES[kind]);
      at = found.index + found[0].length;
    }
    put(text.slice(at), "");
    line.append("\n");
    mark();
    painted.append(line);
    this.copy.replaceChildren(painted);
  }

  maybeComplete() {
    const before = this.area.value.slice(0, this.area.selectionStart);
    // Not after a new line: a second Enter would accept an entry instead of leaving an empty line.
    if (/[\w"'.[=-][ \t]?$/.test(before) && !/#[^\n]*$/.test(before)) this.complete(false);
    else this.close();
  }

  async complete(asked) {
    // A list that is shown for another place must not be taken for this answer.
    if (asked) this.close();
    const number = (this.asked += 1);
    const { text, offset } = this;
    let found;
    try {
      found = await ask("POST", "/api/complete", { text, offset });
    } catch {
      return;
    }
    if (number !== this.asked || text !== this.text || offset !== this.offset) return;
    this.shownFor = { text, offset };
    this.span = [unitsOf(text, found.start), unitsOf(text, found.end)];
    const typed = text.slice(...this.span);
    this.items = found.items;
    if (!this.items.length || (!asked && this.items.length === 1 && this.items[0].insert === typed)) return this.close();
    this.list.replaceChildren(...this.items.map((item, n) => {
      const option = element("li", { role: "option", id: "option-" + n, "data-number": n, "aria-selected": "false" });
      option.append(element("b", {}, item.label), element("i", {}, item.detail || ""), element("span", {}, item.doc || ""));
      return option;
    }));
    this.list.hidden = false;
    this.place();
    this.choose(0);
  }

  place() {
    const before = this.text.slice(0, this.span[0]).split("\n");
    const style = getComputedStyle(this.area);
    const measure = element("span", { class: "measure" }, "0".repeat(50));
    this.copy.append(measure);
    const width = measure.getBoundingClientRect().width / 50;
    measure.remove();
    const left = parseFloat(style.paddingLeft) + before[before.length - 1].length * width - this.area.scrollLeft;
    const top = parseFloat(style.paddingTop) + before.length * this.lineHeight() - this.area.scrollTop;
    this.list.style.left = Math.max(0, Math.min(left, this.area.clientWidth - this.list.offsetWidth)) + "px";
    const room = this.area.clientHeight - top;
    const above = room < this.list.offsetHeight && top > this.list.offsetHeight + this.lineHeight();
    this.list.style.top = (above ? top - this.list.offsetHeight - this.lineHeight() : top) + "px";
  }

  choose(number) {
    this.chosen = (number + this.items.length) % this.items.length;
    [...this.list.children].forEach((option, n) => option.setAttribute("aria-selected", String(n === this.chosen)));
    // Not scrollIntoView, which would scroll the editor, too.
    const option = this.list.children[this.chosen];
    const above = option.offsetTop - this.list.scrollTop;
    if (above < 0) this.list.scrollTop = option.offsetTop;
    else if (above + option.offsetHeight > this.list.clientHeight) this.list.scrollTop = option.offsetTop + option.offsetHeight - this.list.clientHeight;
    this.area.setAttribute("aria-activedescendant", "option-" + this.chosen);
  }

  accept(number) {
    const item = this.items[number];
    const [start, end] = this.span;
    // A key that is corrected has its "=" already.
    const follows = /^[ \t]*=/.test(this.text.slice(end));
    this.close();
    const inserted = follows ? item.insert.replace(/\s*=\s*$/, "") : item.insert;
    this.replace(start, end, inserted);
    // The edit asks for a list again: it is wanted for the value after "key = ", not for the word that was chosen.
    if (!/=\s*$/.test(inserted)) this.close();
  }

  close() {
    this.asked += 1;
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      this.complete(true);
      return;
    }
    // Also drops an answer that is under way.
    if (event.key === "Escape" && this.list.hidden) this.close();
    if (this.list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.choose(this.chosen + (event.key === "ArrowDown" ? 1 : -1));
    else if (event.key === "Enter" || event.key === "Tab") this.accept(this.chosen);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }
}
