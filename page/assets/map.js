"use strict";
// The map: a column a stage, a dot a peer. What others wrote goes in by textContent alone.

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  for (const child of children) made.append(child);
  return made;
}

// How a state looks: its class, its sign, and its word.
const SIGNS = {
  serving: ["serving", "", "serves"],
  joining: ["joining", "J", "joins"],
  "not serving": ["not-serving", "–", "does not serve"],
  leaving: ["leaving", "L", "leaves"],
  left: ["left", "→", "left"],
  gone: ["left", "→", "gone"], // how, a peer's page does not know
  lost: ["lost", "✕", "lost"],
  silent: ["silent", "?", "silent"],
};
const QUIET_S = 1.2; // beats come every second
const FADES_S = 60;

function lookOf(member) {
  const quiet = !member.over && member.quiet_s !== null && member.quiet_s >= QUIET_S;
  return SIGNS[quiet ? "silent" : member.state] || SIGNS["not serving"];
}

class SwarmMap {
  constructor(svg, legend, onChoose) {
    this.svg = svg;
    this.onChoose = onChoose;
    this.chosen = null;
    this.slots = []; // by stage: the id of each place, so that nobody moves when another goes
    this.dots = new Map();
    for (const [state, [look, sign, word]] of Object.entries(SIGNS)) if (state !== "gone") legend.append(this.key(look, sign, word));
    const size = document.createElement("li");
    size.textContent = "larger dot: more tokens a second; thicker line: more tokens along it";
    legend.append(size);
    this.edges = shape("g", { "aria-hidden": "true" });
    this.columns = shape("g");
    this.body = shape("g");
    svg.append(this.columns, this.edges, this.body);
  }

  key(look, sign, word) {
    const item = document.createElement("li");
    const text = shape("text", { class: "sign", x: 9, y: 9.5 });
    text.textContent = sign;
    item.append(shape("svg", { viewBox: "0 0 18 18", class: `key ${look}${look === "serving" || look === "leaving" ? "" : " hollow"}`, "aria-hidden": "true" },
      shape("circle", { class: "body", cx: 9, cy: 9, r: 7 }), text), word);
    return item;
  }

  // Places keep their peers as long as they are there.
  place(moment) {
    const present = new Set(moment.members.map((m) => m.id));
    for (const slots of this.slots) slots.forEach((id, i) => { if (id && !present.has(id)) slots[i] = null; });
    for (const member of moment.members) {
      while (this.slots.length <= member.stage) this.slots.push([]);
      const slots = this.slots[member.stage];
      if (slots.includes(member.id)) continue;
      for (const others of this.slots) { const at = others.indexOf(member.id); if (at >= 0) others[at] = null; }
      const free = slots.indexOf(null);
      if (free >= 0) slots[free] = member.id; else slots.push(member.id);
    }
    for (const slots of this.slots) while (slots.length && slots[slots.length - 1] === null) slots.pop();
  }

  draw(moment) {
    this.moment = moment;
    this.place(moment);
    const stages = moment.stages.length;
    const tallest = Math.max(1, ...this.slots.map((s) => s.length));
    const across = tallest > 36 ? 3 : tallest > 12 ? 2 : 1; // dots beside each other in a column
    const rows = Math.ceil(tallest / across);
    const step = rows > 9 ? 34 : 46, head = 58, left = 92;
    const width = Math.max(170, across * 64 + 60, Math.min(420, (1180 - left) / Math.max(1, stages)));
    const height = head + rows * step + 20;
    this.svg.setAttribute("viewBox", `0 0 ${left + stages * width} ${height}`);
    this.svg.style.maxWidth = `${left + stages * width}px`; // no larger than it was meant
    this.svg.style.minWidth = `${Math.round(0.8 * (left + stages * width))}px`;
    this.drawColumns(moment, left, width, height);
    const fastest = Math.max(1e-9, ...moment.members.map((m) => m.per_second));
    const at = new Map([[-1, { x: 40, y: head + (rows * step) / 2, r: 15 }]]);
    const kept = new Set();
    moment.members.forEach((member, i) => {
      const slot = this.slots[member.stage].indexOf(member.id);
      const x = left + member.stage * width + (across === 1 ? 40 : 34 + (slot % across) * ((width - 60) / across));
      const y = head + Math.floor(slot / across) * step + step / 2;
      const r = 6.5 + (step / 2 - 9) * Math.sqrt(member.per_second / fastest);
      at.set(i, { x, y, r });
      kept.add(member.id);
      this.drawDot(member, x, y, member.over ? 8 : r, across === 1);
    });
    for (const [id, dot] of this.dots) if (!kept.has(id)) { dot.group.remove(); this.dots.delete(id); }
    this.drawTrainer(at.get(-1));
    this.drawEdges(moment, at);
    if (this.chosen && !kept.has(this.chosen)) { this.chosen = null; this.onChoose(null); }
    else if (this.chosen) this.onChoose(moment.members.find((m) => m.id === this.chosen));
  }

  drawColumns(moment, left, width, height) {
    const parts = [];
    moment.stages.forEach((stage, i) => {
      const x = left + i * width;
      const head = shape("text", { class: "head", x: x + 12, y: 22 });
      head.textContent = `Stage ${i}`;
      const words = shape("text", { x: x + 12, y: 40 });
      words.textContent = `${stage.serving} serve · v${stage.version}` + (stage.round_open_s === null ? "" : ` · round ${stage.round_open_s.toFixed(0)} s`);
      parts.push(shape("rect", { class: `column${moment.weakest === i ? " weak" : ""}`, x: x + 2, y: 2, width: width - 10, height: height - 6, rx: 10 }), head, words);
      if (moment.weakest === i) {
        const weak = shape("text", { x: x + width - 18, y: 22, "text-anchor": "end" });
        weak.textContent = "weakest";
        parts.push(weak);
      }
    });
    this.columns.replaceChildren(...parts);
  }

  drawTrainer(at) {
    if (!this.trainer) {
      const sign = shape("text", { class: "sign", "font-size": 13 });
      sign.textContent = "T";
      const name = shape("text", { "text-anchor": "middle", y: 30 });
      name.textContent = "trainer";
      this.trainer = shape("g", { class: "dot trainer", "aria-hidden": "true" }, shape("circle", { class: "body", r: 15 }), sign, name);
      this.body.append(this.trainer);
    }
    this.trainer.setAttribute("transform", `translate(${at.x} ${at.y})`);
  }

  drawDot(member, x, y, r, named) {
    let dot = this.dots.get(member.id);
    if (!dot) {
      dot = { body: shape("circle", { class: "body" }), halo: shape("circle", { class: "halo" }), sign: shape("text", { class: "sign" }), name: shape("text", { class: "peer-name" }) };
      dot.group = shape("g", { tabindex: "0", role: "button" }, dot.halo, dot.body, dot.sign, dot.name);
      const choose = () => { this.chosen = this.chosen === member.id ? null : member.id; this.draw(this.moment); if (!this.chosen) this.onChoose(null); };
      dot.group.addEventListener("click", choose);
      dot.group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } });
      this.dots.set(member.id, dot);
      this.body.append(dot.group);
    }
    const [look, sign, word] = lookOf(member);
    dot.group.setAttribute("class", `dot ${look}${this.chosen === member.id ? " chosen" : ""}`);
    dot.group.setAttribute("transform", `translate(${x} ${y})`);
    dot.group.style.opacity = member.over ? Math.max(0.25, 1 - (this.moment.time - member.over) / FADES_S) : 1;
    dot.group.setAttribute("aria-label", `Peer ${member.peer} of stage ${member.stage}: ${word}${member.over || member.per_second === null ? "" : `, ${short(member.per_second)} tokens a second`}${member.reason ? `. ${member.reason}` : ""}`);
    dot.body.setAttribute("r", r);
    dot.halo.setAttribute("r", r + 5);
    dot.sign.setAttribute("font-size", Math.min(15, r * 1.25));
    dot.sign.textContent = sign;
    dot.name.textContent = named ? member.peer : "";
    dot.name.setAttribute("x", 28);
    dot.name.setAttribute("y", 4);
  }

  drawEdges(moment, at) {
    const most = Math.max(1e-9, ...moment.edges.map((e) => e[2]));
    const chosen = moment.members.findIndex((m) => m.id === this.chosen);
    this.edges.replaceChildren(...moment.edges.filter((e) => at.has(e[0]) && at.has(e[1])).map(([from, to, rate]) => {
      const a = at.get(from), b = at.get(to);
      const bend = (b.x - a.x) / 2;
      const line = shape("path", {
        class: `edge${chosen >= 0 && (from === chosen || to === chosen) ? " lit" : ""}`,
        d: `M${a.x + a.r} ${a.y}C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x - b.r} ${b.y}`,
        "stroke-width": (0.6 + 5 * rate / most).toFixed(2),
      });
      return line;
    }));
  }
}
