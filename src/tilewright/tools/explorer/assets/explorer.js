// The explorer's page: texts of stages side by side, linked by lines of Python. `CodeMirror` shows the texts.
"use strict";

const { EditorState, EditorView, Decoration, StateEffect, StateField, ViewPlugin, GutterMarker, keymap } = CodeMirror;

const NAMES = { source: "Python", python: "traced", cute: "cute", nvvm: "nvvm", llvm: "LLVM", ptx: "PTX", sass: "SASS" };
const USUAL = ["source", "cute", "ptx", "sass"];
const WIDE_SCREEN = 2300;
const PANE_WIDTH = 330;
const LONGEST = 400;
const FLOW = { width: 400, height: 46, gap: 18, lane: 11, letter: 7.3 };
const TYPE = /!cute\.tensor<(\w+), "(\w+)", "([^"]*)"/g;

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** An element with attributes and children; texts become text nodes. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** The data of the page, which is packed with zlib. */
async function unpacked() {
  const bytes = Uint8Array.from(atob(find("#data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** What is kept over reloads; a page opened from a file may be refused storage. */
const kept = {
  read(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(`tilewright.${name}`)) ?? otherwise; } catch { return otherwise; }
  },
  write(name, value) {
    try { localStorage.setItem(`tilewright.${name}`, JSON.stringify(value)); } catch { /* it is forgotten */ }
  },
};

/** 1234567 as 1.2M. */
function short(value) {
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return (value / size).toFixed(value / size < 100 ? 1 : 0) + letter;
  }
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const grouped = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : short(value));

// ---- texts ----------------------------------------------------------------------------------------------------

const simple = (rules) => CodeMirror.StreamLanguage.define(CodeMirror.simpleMode({ start: rules }));
const LANGUAGES = {
  python: CodeMirror.StreamLanguage.define(CodeMirror.python),
  mlir: simple([
    { regex: /\/\/.*/, token: "comment" },
    { regex: /"[\w]+\.[\w.]+"(?=\()/, token: "keyword" },
    { regex: /"(?:[^"\\]|\\.)*"/, token: "string" },
    { regex: /%[\w$#.-]+/, token: "variableName" },
    { regex: /[!#][\w.]+/, token: "typeName" },
    { regex: /\^\w+/, token: "labelName" },
    { regex: /@[\w$.]+/, token: "labelName" },
    { regex: /\b(?:i\d+|f\d+|bf16|index|vector|array)\b/, token: "typeName" },
    { regex: /\b[a-z_]+\.[a-z_.]+\b/, token: "keyword" },
    { regex: /-?\b\d[\w.+-]*/, token: "number" },
    { regex: /\w+/, token: null },
  ]),
  llvm: simple([
    { regex: /;.*/, token: "comment" },
    { regex: /"(?:[^"\\]|\\.)*"/, token: "string" },
    { regex: /%[\w$.-]+/, token: "variableName" },
    { regex: /@[\w$.]+/, token: "labelName" },
    { regex: /!\w+/, token: "comment" },
    { regex: /\b(?:i\d+|float|double|half|bfloat|ptr|void|x|addrspace)\b/, token: "typeName" },
    { regex: /-?\b\d[\w.+-]*/, token: "number" },
    { regex: /\b(?:define|declare|call|load|store|br|ret|phi|icmp|fcmp|select|getelementptr|label|target|attributes|switch|tail|insertvalue|extractvalue|insertelement|extractelement|[fsu]?(?:add|sub|mul|div|rem|neg)|shl|lshr|ashr|and|or|xor|zext|sext|trunc|bitcast|addrspacecast|fp\w+|[su]itofp)\b/, token: "keyword" },
    { regex: /\w+/, token: null },
  ]),
  ptx: simple([
    { regex: /\/\/.*/, token: "comment" },
    { regex: /"[^"]*"/, token: "string" },
    { regex: /\s+\.loc\b.*/, token: "comment", sol: true },
    { regex: /%[\w.]+/, token: "variableName" },
    { regex: /\$[\w.]+/, token: "labelName" },
    { regex: /\s+[a-z][\w.:]*/, token: "keyword", sol: true },
    { regex: /@!?/, token: "meta" },
    { regex: /\.[a-z]\w*/, token: "typeName" },
    { regex: /-?\b\d\w*/, token: "number" },
    { regex: /[a-z][\w.:]*/, token: "keyword" },
    { regex: /\w+/, token: null },
  ]),
  sass: simple([
    { regex: /\/\*.*?\*\/|\/\/.*/, token: "comment" },
    { regex: /@!?U?P[T\d]+/, token: "meta" },
    { regex: /\b(?:U?R\d+|U?RZ|U?P\d|U?PT|SR_[\w.]+|B\d+|SB\d+)\b/, token: "variableName" },
    { regex: /`\([^)]*\)|\.L\w+:?/, token: "labelName" },
    { regex: /\s+\.\w+.*/, token: "comment", sol: true },
    { regex: /[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*/, token: "keyword" },
    { regex: /c\[|\b(?:0x)?[0-9a-f]+\b|-?\d[\d.e+-]*/, token: "number" },
    { regex: /\w+/, token: null },
  ]),
};
const LANGUAGE_OF = { source: "python", python: "python", cute: "mlir", nvvm: "mlir", llvm: "llvm", ptx: "ptx", sass: "sass" };

const { tags } = CodeMirror;
const COLOURS = CodeMirror.syntaxHighlighting(CodeMirror.HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword], color: "var(--keyword)" },
  { tag: [tags.typeName, tags.standard(tags.variableName)], color: "var(--type)" },
  { tag: [tags.number, tags.atom, tags.bool], color: "var(--number)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
  { tag: tags.comment, color: "var(--comment)" },
  { tag: [tags.labelName, tags.definition(tags.variableName)], color: "var(--op)" },
  { tag: tags.meta, color: "var(--label)" },
]));

const READ_ONLY = [
  EditorState.readOnly.of(true),
  EditorView.contentAttributes.of({ inputmode: "none", spellcheck: "false", autocapitalize: "off", translate: "no" }),
  CodeMirror.search({ top: true }),
  keymap.of(CodeMirror.searchKeymap),
  COLOURS,
];

/** Which lines are lit: a place of Python, the places related to it, and a line of PTX. */
const setHot = StateEffect.define();
const hotField = StateField.define({
  create: () => NOTHING,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setHot)) return effect.value;
    return value;
  },
});
const NOTHING = { place: -1, related: new Set(), ptx: 0, sass: 0, pinned: -1 };
const setMetric = StateEffect.define();

/** Decorates the lines that can be seen, no others: so a hover costs the same at any length. */
function lineMarks(pane) {
  const marks = new Map();
  const mark = (name) => {
    if (!marks.has(name)) marks.set(name, Decoration.line({ class: name }));
    return marks.get(name);
  };
  const type = Decoration.mark({ class: "layout-type", attributes: { title: "draw this layout (Enter)" } });
  const build = (view) => {
    const hot = view.state.field(hotField);
    const builder = new CodeMirror.RangeSetBuilder();
    for (const { from, to } of view.visibleRanges) {
      for (let at = from; at <= to; ) {
        const line = view.state.doc.lineAt(at);
        const names = pane.classes(line.number, hot);
        if (names) builder.add(line.from, line.from, mark(names));
        if (pane.name === "cute") {
          for (const found of line.text.matchAll(TYPE)) {
            builder.add(line.from + found.index, line.from + found.index + found[0].length + 1, type);
          }
        }
        at = line.to + 1;
      }
    }
    return builder.finish();
  };
  return ViewPlugin.fromClass(class {
    constructor(view) { this.decorations = build(view); }
    update(update) {
      if (update.docChanged || update.viewportChanged
        || update.startState.field(hotField) !== update.state.field(hotField)) this.decorations = build(update.view);
    }
  }, { decorations: (plugin) => plugin.decorations });
}

class HeatMarker extends GutterMarker {
  constructor(value, share, title) { super(); Object.assign(this, { value, share, title }); }
  eq(other) { return other.value === this.value && other.share === this.share; }
  toDOM() {
    const cell = make("div", { title: this.title }, short(this.value));
    cell.style.background = `rgba(var(--heat), ${(0.08 + 0.62 * Math.sqrt(this.share)).toFixed(3)})`;
    return cell;
  }
}

/** The column of heat of a pane. */
function heatColumn(pane) {
  return CodeMirror.gutter({
    class: "heat",
    lineMarker(view, block) {
      const number = view.state.doc.lineAt(block.from).number;
      const value = pane.heat.get(number);
      return value ? new HeatMarker(value, value / pane.hottest, `${grouped(value)} ${metric().name}`) : null;
    },
    lineMarkerChange: (update) => update.transactions.some((t) => t.effects.some((effect) => effect.is(setMetric))),
  });
}

// ---- state ----------------------------------------------------------------------------------------------------

let data, kernel, panes = [], view = "stages", metricKey, pinned = NOTHING, hovered = null;
let placeOf = new Map(); // "file line" to the number of a place
let callers = new Map(), callees = new Map();

const metric = () => data.metrics.find((item) => item.key === metricKey) ?? { key: "", name: "", about: "" };
const program = () => data.programs[kernel.program];
const place = (number) => ({ file: data.files[data.places[number][0]], line: data.places[number][1] });

/** One stage's text beside the others. `name` is a stage, or `source` for the files of Python. */
class Pane {
  constructor(name, stage) {
    Object.assign(this, { name, stage, file: 0, heat: new Map(), hottest: 1 });
    this.title = make("b", {}, NAMES[name] ?? name);
    this.note = make("span");
    this.ruler = make("canvas", { class: "ruler", "aria-hidden": "true" });
    this.strip = make("canvas");
    this.editor = make("div", { class: "editor" });
    this.files = name === "source" && data.files.length > 1
      ? make("select", { "aria-label": "file", onchange: (event) => this.show(Number(event.target.value)) }) : null;
    this.files?.append(...data.files.map((file, number) => make("option", { value: number }, file.name)));
    this.element = make("div", { class: `pane ${name === "cute" ? "wide" : ""}`, "data-stage": name },
      make("div", { class: "head" }, this.title, this.files, this.note),
      make("div", { class: "body" }, this.editor, this.ruler));
    this.view = new EditorView({ parent: this.editor });
    this.ruler.addEventListener("click", (event) => this.jump(event.offsetY / this.ruler.clientHeight));
    this.editor.addEventListener("mousemove", (event) => this.hover(event));
    this.editor.addEventListener("mouseleave", () => light(null));
    this.editor.addEventListener("click", (event) => this.clicked(event));
    new ResizeObserver(() => this.drawRuler()).observe(this.ruler);
    this.load();
  }

  get text() { return this.name === "source" ? data.files[this.file]?.text ?? "" : this.stage.text; }

  /** Take the text of the chosen file or stage. */
  load() {
    this.lines = new Map(); // a place's number to the lines that come from it
    this.findings = new Set(kernel.findings.map((item) => item.place));
    const texts = this.text.split("\n");
    this.places = this.name === "source"
      ? texts.map((_, at) => placeOf.get(`${this.file} ${at + 1}`) ?? -1) : this.stage.places;
    this.places.forEach((number, at) => {
      if (number < 0) return;
      if (!this.lines.has(number)) this.lines.set(number, []);
      this.lines.get(number).push(at + 1);
    });
    this.view.setState(EditorState.create({
      doc: this.text.replace(/\n$/, ""),
      extensions: [
        heatColumn(this), CodeMirror.lineNumbers(), READ_ONLY, LANGUAGES[LANGUAGE_OF[this.name]] ?? [], hotField,
        lineMarks(this), EditorView.updateListener.of((update) => this.moved(update)),
      ],
    }));
    const count = this.view.state.doc.lines;
    this.note.textContent = `${count.toLocaleString("en")} lines`;
    this.weigh();
  }

  show(file) {
    if (this.name !== "source" || file === this.file) return;
    this.file = file;
    if (this.files) this.files.value = String(file);
    this.load();
    this.set(hovered ?? pinned);
  }

  /** The heat of each line in the chosen metric. */
  weigh() {
    const { ptx, sass, python } = kernel.counts;
    this.heat = new Map();
    const add = (line, counts) => { if (counts?.[metricKey] > 0) this.heat.set(line, counts[metricKey]); };
    if (this.name === "source") this.places.forEach((number, at) => number >= 0 && add(at + 1, python[number]));
    const own = { ptx, sass }[this.name] ?? {};
    for (const [line, counts] of Object.entries(own)) add(Number(line), counts);
    this.hottest = Math.max(1e-9, ...this.heat.values());
    this.view.dispatch({ effects: setMetric.of(null) });
    this.drawRuler();
  }

  /** The classes of a line, "" for none. */
  classes(number, hot) {
    const here = this.places[number - 1] ?? -1;
    const names = [];
    if (here >= 0) {
      if (here === hot.place) names.push(hot.ptx && this.ptxLine(number) === hot.ptx ? "exact" : "lit");
      else if (hot.related.has(here)) names.push("related");
      if (here === hot.pinned) names.push("pinned");
      if (this.name === "source" && this.findings.has(here)) names.push("finding");
    }
    return names.join(" ");
  }

  ptxLine(number) {
    return this.name === "ptx" ? number : this.name === "sass" ? this.stage.ptx[number - 1] : 0;
  }

  set(hot) {
    this.view.dispatch({ effects: setHot.of(hot) });
    this.drawRuler(false);
  }

  hotAt(number) {
    const here = this.places[number - 1] ?? -1;
    if (here < 0) return null;
    const related = new Set([...(callers.get(here) ?? []), ...(callees.get(here) ?? [])]);
    const sass = this.name === "sass" ? number : 0;
    return { place: here, related, ptx: this.ptxLine(number), sass, pinned: pinned.pinned };
  }

  lineAt(event) {
    const block = this.view.lineBlockAtHeight(event.clientY - this.view.documentTop);
    return this.view.state.doc.lineAt(block.from).number;
  }

  hover(event) {
    if (!event.target.closest(".cm-content")) return;
    light(this.hotAt(this.lineAt(event)));
  }

  clicked(event) {
    const type = event.target.closest(".layout-type");
    if (type) drawLayouts([keyOf(type.textContent)]);
  }

  /** The caret came to another line: it is held, and the other stages follow. */
  moved(update) {
    if (!update.selectionSet || !update.transactions.some((item) => item.isUserEvent("select") || item.annotation(own))) return;
    const number = update.state.doc.lineAt(update.state.selection.main.head).number;
    hold(this.hotAt(number), this);
  }

  go(number) {
    const line = this.view.state.doc.line(Math.min(Math.max(number, 1), this.view.state.doc.lines));
    this.view.dispatch({
      selection: { anchor: line.from }, annotations: own.of(true),
      effects: EditorView.scrollIntoView(line.from, { y: "center" }),
    });
    this.view.focus();
  }

  jump(share) { this.go(Math.round(share * this.view.state.doc.lines)); }

  /** Scroll to the first line of a place, unless one of them is in sight. */
  follow(hot) {
    const lines = this.lines.get(hot.place);
    if (!lines) {
      if (this.name === "source") this.followFile(hot);
      return;
    }
    const exact = hot.ptx ? lines.filter((line) => this.ptxLine(line) === hot.ptx) : [];
    const wanted = exact.length ? exact : lines;
    const box = this.view.scrollDOM.getBoundingClientRect();
    const first = this.view.lineBlockAtHeight(box.top - this.view.documentTop + 8).from;
    const last = this.view.lineBlockAtHeight(box.bottom - this.view.documentTop - 8).from;
    const doc = this.view.state.doc;
    if (wanted.some((line) => doc.line(line).from >= first && doc.line(line).from <= last)) return;
    this.view.dispatch({ effects: EditorView.scrollIntoView(doc.line(wanted[0]).from, { y: "center" }) });
  }

  followFile(hot) {
    this.show(data.places[hot.place][0]);
    if (this.lines.has(hot.place)) this.follow(hot);
  }

  /** The strip beside the text: heat, which is drawn anew where it changes, and where the lit lines are. */
  drawRuler(anew = true) {
    const { clientWidth: width, clientHeight: height } = this.ruler;
    if (!width || !height) return;
    const scale = window.devicePixelRatio || 1;
    const each = height / Math.max(this.view.state.doc.lines, 1);
    const clean = (canvas) => {
      canvas.width = width * scale; // setting it clears the canvas
      canvas.height = height * scale;
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      return context;
    };
    if (anew || this.strip.height !== height * scale) {
      const context = clean(this.strip);
      for (const [line, value] of this.heat) {
        context.fillStyle = `rgba(${colours.heat}, ${0.15 + 0.75 * Math.sqrt(value / this.hottest)})`;
        context.fillRect(0, (line - 1) * each, width / 2, Math.max(each, 1.5));
      }
    }
    const context = clean(this.ruler);
    context.drawImage(this.strip, 0, 0, width, height);
    const hot = hovered ?? pinned;
    context.fillStyle = colours.accent;
    for (const line of this.lines.get(hot.place) ?? []) context.fillRect(width / 2, (line - 1) * each, width / 2, Math.max(each, 2));
  }
}

// The strips are drawn on each hover: their colours are read once for each theme.
const colours = { heat: "", accent: "" };

// Marks what the page itself does to a selection.
const own = CodeMirror.Annotation.define();

/** Light what belongs to a line under the mouse; null lights what is held. */
let waiting = false;
function light(hot) {
  if (hovered?.place === hot?.place && hovered?.ptx === hot?.ptx && hovered?.sass === hot?.sass) return;
  hovered = hot;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const shown = hovered ?? pinned;
    shownPanes().forEach((pane) => pane.set(shown));
    describe(shown);
    performance.mark("lit");
  });
}

/** Hold a line: it stays lit, and the other panes scroll to it. */
function hold(hot, origin) {
  pinned = hot ? { ...hot, pinned: hot.place } : NOTHING;
  hovered = null;
  shownPanes().forEach((pane) => {
    pane.set(pinned);
    if (hot && pane !== origin) pane.follow(pinned);
  });
  describe(pinned);
}

// ---- the line below --------------------------------------------------------------------------------------------

function describe(hot) {
  const detail = find("#detail");
  if (hot.place < 0) {
    detail.replaceChildren(make("span", { class: "quiet" }, data.missing
      ? `No counters: ${data.missing}` : "Move over a line, or go to one with the arrow keys: what belongs to it is lit in every stage."));
    return;
  }
  const { file, line } = place(hot.place);
  const whole = (file.text.split("\n")[line - 1] ?? "").trim();
  const text = whole.length > LONGEST ? `${whole.slice(0, LONGEST)} …` : whole;
  const head = make("div", {}, make("b", {}, `${file.name}:${line} `), make("code", {}, text));
  const figures = make("div", { class: "figures" });
  const counts = kernel.counts.python[hot.place] ?? {};
  for (const item of data.metrics) {
    const value = counts[item.key];
    if (value) figures.append(make("span", { title: item.about }, make("b", {}, grouped(value)), ` ${item.name}`, estimate(item)));
  }
  for (const stage of kernel.stages) {
    const number = panes.find((pane) => pane.stage === stage)?.lines.get(hot.place)?.length;
    if (number) figures.append(make("span", {}, make("b", {}, String(number)), ` in ${NAMES[stage.name] ?? stage.name}`));
  }
  const said = [];
  const waits = kernel.waits?.[hot.place];
  if (waits) said.push(make("div", { class: "said" }, `waits for ${shares(waits)}`, estimate({ estimate: true })));
  const sampled = kernel.sampled[hot.place];
  if (sampled) said.push(make("div", { class: "said" }, `ncu saw it wait for ${shares(sampled)}`));
  const used = kernel.code.registers[hot.sass];
  if (used) said.push(make("div", { class: "said" }, registersOf(used)));
  const from = (callers.get(hot.place) ?? []).map(place).map((caller) => `${caller.file.name}:${caller.line}`);
  if (from.length) said.push(make("div", { class: "said" }, `called from ${from.join(", ")}`));
  for (const item of kernel.findings) if (item.place === hot.place) said.push(make("div", { class: "said bad" }, item.text));
  for (const item of kernel.remarks) if (item.place === hot.place) said.push(make("div", { class: "said" }, item.text));
  detail.replaceChildren(head, figures, ...said);
}

const shares = (waits) => waits.filter(([, share]) => share >= 0.005).map(([reason, share]) => `${reason} ${Math.round(share * 100)} %`).join(", ");

const KINDS = { GPR: "registers", PRED: "predicates", UGPR: "uniform registers", UPRED: "uniform predicates" };

/** What an instruction reads and writes, and what is live at it. */
function registersOf({ live, reads, writes }) {
  const parts = [`${reads.length ? `reads ${reads.join(" ")}` : "reads no register"}`, `writes ${writes.join(" ") || "none"}`];
  const kinds = Object.entries(live).map(([kind, count]) => `${count} ${count === 1 ? (KINDS[kind] ?? kind).replace(/s$/, "") : KINDS[kind] ?? kind}`);
  return `this instruction ${parts.join(", ")}; live at it: ${kinds.join(", ") || "none"}`;
}

const estimate = (item) => (item.estimate ? make("span", { class: "estimate" }, "estimate") : null);

// ---- layouts ---------------------------------------------------------------------------------------------------

function keyOf(text) {
  const [found] = text.matchAll(TYPE);
  return found ? `${found[1]} ${found[2]} ${found[3]}` : "";
}

function picture(key) {
  const drawing = data.layouts[key];
  const made = make("div", { class: "picture", "data-layout": key }, make("h2", {}, drawing.title), make("p", {}, drawing.facts));
  const svg = make("div");
  svg.innerHTML = drawing.svg;
  made.append(svg);
  if (drawing.plain) {
    const plain = make("div");
    plain.innerHTML = drawing.plain;
    made.append(make("p", { class: "beside" }, "Without the swizzle:"), plain);
  }
  return made;
}

function drawLayouts(keys) {
  const known = [...new Set(keys)].filter((key) => data.layouts[key]);
  if (!known.length) return;
  const dialog = find("#drawing");
  dialog.replaceChildren(...known.map(picture), make("form", { method: "dialog" }, make("button", {}, "close")));
  dialog.showModal();
}

function layoutsOfLine() {
  const pane = focused();
  if (!pane) return;
  const line = pane.view.state.doc.lineAt(pane.view.state.selection.main.head);
  let keys = [...line.text.matchAll(TYPE)].map((found) => `${found[1]} ${found[2]} ${found[3]}`);
  if (pane.name !== "cute") { // those of the lines of cute that are lit
    const cute = kernel.stages.find((stage) => stage.name === "cute");
    const texts = cute?.text.split("\n") ?? [];
    keys = texts.flatMap((text, at) => (cute.places[at] === pinned.place && pinned.place >= 0
      ? [...text.matchAll(TYPE)].map((found) => `${found[1]} ${found[2]} ${found[3]}`) : []));
  }
  drawLayouts(keys);
}

function showLayouts() {
  const list = find("#layout-list");
  if (list.children.length) return;
  const choose = (item) => {
    all("li", list).forEach((other) => other.classList.toggle("chosen", other === item));
    find("#layout-picture").replaceChildren(picture(item.dataset.key));
    item.scrollIntoView({ block: "nearest" });
  };
  for (const [key, drawing] of Object.entries(data.layouts)) {
    list.append(make("li", { "data-key": key, onclick: (event) => choose(event.currentTarget) }, drawing.title));
  }
  list.onkeydown = listKeys(list, choose);
  if (list.children.length) choose(list.children[0]);
  else find("#layout-picture").replaceChildren(make("p", { class: "quiet" }, "Stage cute of this function has no tensors."));
}

/** Arrow keys choose in a list. */
function listKeys(list, choose) {
  return (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const items = all("li", list);
    if (!step || !items.length) return;
    event.preventDefault();
    const at = items.findIndex((item) => item.classList.contains("chosen"));
    choose(items[Math.min(Math.max(at + step, 0), items.length - 1)]);
  };
}

// ---- passes ----------------------------------------------------------------------------------------------------

let diffViews = null;

function showPasses() {
  const list = find("#pass-list");
  if (list.dataset.program === String(kernel.program)) return;
  list.dataset.program = kernel.program;
  list.replaceChildren();
  const choose = (item) => {
    all("li", list).forEach((other) => other.classList.toggle("chosen", other === item));
    item.scrollIntoView({ block: "nearest" });
    showDiff(program().passes[Number(item.dataset.pass)].rows);
  };
  program().passes.forEach((pass, number) => {
    const changed = pass.rows.filter(([kind]) => kind !== "same" && kind !== "skipped").length;
    const time = pass.seconds ? `${(pass.seconds * 1e3).toFixed(1)} ms` : "";
    list.append(make("li", { "data-pass": number, class: changed ? "" : "idle", onclick: (event) => choose(event.currentTarget) },
      make("span", { title: pass.name }, pass.name), make("span", { class: "count" }, changed ? `±${changed}` : "", " ", time)));
  });
  list.onkeydown = listKeys(list, choose);
  const first = all("li", list).find((item) => !item.classList.contains("idle")) ?? list.children[0];
  if (first) choose(first);
}

/** Two texts of equally many lines, which scroll together. */
function showDiff(rows) {
  find("#no-change").hidden = rows.length > 0;
  diffViews ??= ["before", "after"].map((side) => new EditorView({ parent: find(`#${side}`) }));
  diffViews.forEach((editor, side) => {
    editor.setState(EditorState.create({
      doc: rows.map((row) => (row[0] === "skipped" ? row[1] : row[1 + side])).join("\n"),
      extensions: [READ_ONLY, LANGUAGES.mlir, diffMarks(rows, side), EditorView.editorAttributes.of({ class: side ? "after" : "before" })],
    }));
    editor.scrollDOM.onscroll = () => {
      const other = diffViews[1 - side].scrollDOM;
      other.scrollTop = editor.scrollDOM.scrollTop;
      other.scrollLeft = editor.scrollDOM.scrollLeft;
    };
  });
}

/** Marks changed rows, and in those that differ on both sides the parts that do. */
function diffMarks(rows, side) {
  const part = Decoration.mark({ class: "part" });
  const build = (editor) => {
    const builder = new CodeMirror.RangeSetBuilder();
    for (const { from, to } of editor.visibleRanges) {
      for (let at = from; at <= to; ) {
        const line = editor.state.doc.lineAt(at);
        const [kind, before, after] = rows[line.number - 1] ?? ["same"];
        if (kind !== "same") builder.add(line.from, line.from, Decoration.line({ class: `row-${kind}` }));
        if (kind === "changed") {
          for (const change of CodeMirror.presentableDiff(before, after)) {
            const [start, end] = side ? [change.fromB, change.toB] : [change.fromA, change.toA];
            if (end > start) builder.add(line.from + start, line.from + end, part);
          }
        }
        at = line.to + 1;
      }
    }
    return builder.finish();
  };
  return ViewPlugin.fromClass(class {
    constructor(editor) { this.decorations = build(editor); }
    update(update) { if (update.viewportChanged) this.decorations = build(update.view); }
  }, { decorations: (plugin) => plugin.decorations });
}

// ---- flow ------------------------------------------------------------------------------------------------------

let blockView = null, chosenBlock = 0;

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The jumps of the blocks, each with a lane of its own beside those that it would touch: short ones nearest. */
function jumps(blocks) {
  const found = blocks.flatMap((block, from) => block.next.filter((to) => to !== from + 1).map((to) => ({ from, to, back: to <= from })));
  found.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from) || a.from - b.from);
  const taken = { true: [], false: [] };
  for (const jump of found) {
    const [low, high] = [Math.min(jump.from, jump.to), Math.max(jump.from, jump.to)];
    const side = taken[jump.back];
    jump.lane = side.findIndex((spans) => spans.every(([start, end]) => high < start || end < low));
    if (jump.lane < 0) jump.lane = side.push([]) - 1;
    side[jump.lane].push([low, high]);
  }
  return { found, left: taken.true.length, right: taken.false.length };
}

const sassLines = () => kernel.stages.find((stage) => stage.name === "sass")?.text.split("\n") ?? [];
const linesOf = (block) => Array.from({ length: block.last - block.first + 1 }, (_, at) => block.first + at);
const mostLive = (block) => Math.max(0, ...linesOf(block).map((line) => kernel.counts.sass[line]?.live ?? 0));

/** The heat of a block: the sum of its lines, of live registers the most. */
function heatOf(block) {
  const values = linesOf(block).map((line) => kernel.counts.sass[line]?.[metricKey] ?? 0);
  return metricKey === "live" ? Math.max(0, ...values) : values.reduce((sum, value) => sum + value, 0);
}

/** The lines of Python that a block comes from, shortened. */
function originOf(block, stage) {
  const found = new Map();
  for (const number of linesOf(block).map((line) => stage.places[line - 1]).filter((at) => at >= 0)) {
    const { file, line } = place(number);
    found.set(file.name, (found.get(file.name) ?? new Set()).add(line));
  }
  return [...found].map(([file, lines]) => `${file}:${[...lines].sort((a, b) => a - b).join(",")}`).join(" ");
}

function showFlow() {
  const { blocks } = kernel.code;
  const graph = find("#flow-graph");
  find("#flow-code").hidden = !blocks.length;
  if (!blocks.length) {
    graph.replaceChildren(make("p", { class: "quiet" }, "There is no machine code: what disassembles it is not installed, or nothing was assembled."));
    return;
  }
  chosenBlock = Math.min(chosenBlock, blocks.length - 1);
  const { found, left, right } = jumps(blocks);
  const start = 14 + left * FLOW.lane, step = FLOW.height + FLOW.gap;
  const top = (at) => 10 + at * step;
  const svg = drawn("svg", { width: start + FLOW.width + right * FLOW.lane + 26, height: top(blocks.length) });
  const stage = kernel.stages.find((item) => item.name === "sass");
  const texts = sassLines(), hottest = Math.max(1e-9, ...blocks.map(heatOf));
  for (const jump of found) {
    const edge = jump.back ? start : start + FLOW.width;
    const lane = jump.back ? start - 10 - jump.lane * FLOW.lane : start + FLOW.width + 10 + jump.lane * FLOW.lane;
    const [from, to] = [top(jump.from) + FLOW.height * 0.75, top(jump.to) + FLOW.height * 0.25];
    const tip = jump.back ? 6 : -6;
    svg.append(drawn("path", { class: jump.back ? "jump back" : "jump", "data-from": jump.from, "data-to": jump.to,
      d: `M${edge},${from} H${lane} V${to} H${edge} m${-tip},-3.5 l${tip},3.5 l${-tip},3.5` }));
  }
  blocks.forEach((block, at) => {
    if (block.next.includes(at + 1)) {
      const middle = start + FLOW.width / 2;
      svg.append(drawn("path", { class: "jump fall", "data-from": at, "data-to": at + 1,
        d: `M${middle},${top(at) + FLOW.height} V${top(at + 1)} m-3.5,-6 l3.5,6 l3.5,-6` }));
    }
    const heat = heatOf(block) / hottest;
    const fits = Math.floor((FLOW.width - 20) / FLOW.letter);
    const cut = (text) => (text.length > fits ? `${text.slice(0, fits - 1)}…` : text);
    const last = (texts[block.last - 1] ?? "").replace(/\/\*.*?\*\/|;/g, "").trim().replace(/\s+/g, " ");
    const head = `${at}  ${plural(block.last - block.first + 1, "instruction")}, ${mostLive(block)} live`;
    const group = drawn("g", { class: "block", "data-block": at, transform: `translate(${start},${top(at)})` },
      drawn("rect", { width: FLOW.width, height: FLOW.height, rx: 5 }),
      drawn("rect", { class: "heat", width: FLOW.width, height: FLOW.height, rx: 5, "fill-opacity": heat ? (0.06 + 0.5 * Math.sqrt(heat)).toFixed(3) : 0 }),
      drawn("text", { x: 10, y: 18 }, `${head}${heat ? `, ${short(heatOf(block))} ${metricKey === "live" ? "at most" : metric().name}` : ""}`),
      drawn("text", { x: 10, y: 36, class: "soft" }, cut(`${last}  ${originOf(block, stage)}`)));
    group.append(drawn("title", {}, `${texts[block.first - 1]?.trim() ?? ""} …\n${originOf(block, stage)}`));
    group.addEventListener("click", () => chooseBlock(at));
    svg.append(group);
  });
  graph.replaceChildren(svg);
  chooseBlock(chosenBlock);
}

/** Show the code of a block, and where it comes from and goes to. */
function chooseBlock(at) {
  chosenBlock = at;
  const { blocks, registers } = kernel.code;
  const block = blocks[at];
  all("#flow-graph .block").forEach((item) => item.classList.toggle("chosen", Number(item.dataset.block) === at));
  all("#flow-graph .jump").forEach((item) => item.classList.toggle("chosen", [item.dataset.from, item.dataset.to].includes(String(at))));
  find(`#flow-graph [data-block="${at}"]`)?.scrollIntoView({ block: "nearest" });
  const before = blocks.flatMap((other, number) => (other.next.includes(at) ? [number] : []));
  const count = block.last - block.first + 1;
  const links = (numbers, none) => (numbers.length ? numbers.flatMap((number, i) => [i ? ", " : "", make("button", { class: "link", onclick: () => chooseBlock(number) }, String(number))]) : [none]);
  find("#flow-code h2").replaceChildren(
    `block ${at}: ${plural(count, "instruction")}, a chain of ${block.steps}; from `, ...links(before, "the entry"), "; to ", ...links(block.next, "the end"), " ",
    make("button", { onclick: toStages }, make("kbd", {}, "Enter"), "in the stages"));
  const most = Math.max(1, ...blocks.map(mostLive));
  blockView ??= new EditorView({ parent: find("#block-text") });
  blockView.setState(EditorState.create({
    doc: sassLines().slice(block.first - 1, block.last).join("\n"),
    extensions: [
      CodeMirror.gutter({
        class: "heat live",
        lineMarker(view, line) {
          const used = registers[block.first + view.state.doc.lineAt(line.from).number - 1];
          const live = used?.live.GPR ?? 0;
          return used ? new HeatMarker(live, live / most, registersOf(used)) : null;
        },
      }),
      CodeMirror.lineNumbers({ formatNumber: (number) => String(block.first + number - 1) }), READ_ONLY, LANGUAGES.sass,
    ],
  }));
}

function toStages() {
  show("stages");
  const pane = panes.find((item) => item.name === "sass");
  if (pane.element.hidden) toggle("sass", true);
  pane.go(kernel.code.blocks[chosenBlock].first);
}

function flowKeys(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const count = kernel.code.blocks.length;
  if (event.key === "Enter" && count) toStages();
  else if (step && count) chooseBlock(Math.min(Math.max(chosenBlock + step, 0), count - 1));
  else return;
  event.preventDefault();
}

// ---- report ----------------------------------------------------------------------------------------------------

const card = (title, ...children) => make("div", { class: "card" }, make("h2", {}, ...[title].flat()), ...children);
const table = (rows) => make("table", {}, ...rows.map(([name, value]) => make("tr", {}, make("td", {}, name), make("td", {}, value))));

function bars(limits, share, text) {
  return limits.map(([name, value, more], at) => {
    const length = make("i");
    length.style.width = `${Math.max(100 * share(value, at), 0.5)}%`;
    return make("div", { class: `bar ${more === true ? "binds" : ""}` }, make("span", {}, name), make("span", {}, length), make("span", {}, text(value, more)));
  });
}

function showReport() {
  const cards = [card("Figures", table(kernel.report.rows))];
  if (kernel.report.limits.length) {
    const most = Math.max(...kernel.report.limits.map((limit) => limit[1]));
    cards.push(card("Occupancy: blocks that each resource admits on a multiprocessor",
      ...bars(kernel.report.limits, (value) => value / most, (value) => String(value)),
      make("p", { class: "quiet" }, "The resource that admits the fewest blocks limits.")));
  }
  kernel.launches.slice(0, 4).forEach((launch, number) => {
    const which = kernel.launches.length > 1 ? ` ${number + 1} of ${kernel.launches.length}` : "";
    cards.push(card(`Launch${which}, counted by the emulator`, table(launch.rows)));
    if (launch.limits.length) {
      const most = launch.limits[0][1] || 1;
      const rows = launch.limits.map(([name, seconds, amount], at) => [name, seconds, at === 0 ? true : amount]);
      cards.push(card([`Roofline on ${launch.card}${which}`, estimate({ estimate: true })],
        ...bars(rows, (value) => value / most, (value) => `${Number((value * 1e6).toPrecision(3))} µs`),
        make("p", { class: "quiet" }, "The least time of each part of the card at its peak rate, from counted work; the longest binds. No measurement: a real run takes longer.")));
    } else if (launch.note) cards.push(card("Roofline", make("p", { class: "quiet" }, launch.note)));
  });
  if (kernel.all_waits.length) {
    cards.push(card(["What warps would wait for", estimate({ estimate: true })],
      ...bars(kernel.all_waits.map(([reason, share], at) => [reason, share, at === 0]), (value) => value / kernel.all_waits[0][1], (value) => `${(100 * value).toFixed(0)} %`),
      make("p", { class: "quiet" }, `Latencies times counts, of each warp as if it ran alone. ${kernel.hiding ? `So ${kernel.hiding}.` : ""}`)));
  }
  if (kernel.all_sampled.length) {
    cards.push(card("What warps waited for, sampled by ncu",
      ...bars(kernel.all_sampled.map(([reason, share], at) => [reason, share, at === 0]), (value) => value / kernel.all_sampled[0][1], (value) => `${(100 * value).toFixed(0)} %`)));
  }
  if (data.missing) cards.push(card("Counters", make("p", { class: "quiet" }, data.missing)));
  cards.push(...hotLines());
  if (kernel.findings.length) cards.push(card("Findings of the emulator", listOf(kernel.findings, "bad")));
  if (kernel.fidelity) cards.push(card("How far the emulator is known to be a GPU", ...kernel.fidelity.split("\n").map((line) => make("p", { class: "quiet" }, line.trim()))));
  if (kernel.remarks.length) cards.push(card("Remarks", listOf(kernel.remarks)));
  cards.push(card("Time to compile", table(program().seconds.map(([name, seconds]) => [NAMES[name] ?? name, `${(seconds * 1e3).toFixed(1)} ms`]))));
  find("#report").replaceChildren(...cards);
}

const listOf = (items, tone = "") => make("ul", {}, ...items.map((item) => make("li", { class: tone }, item.text, " ", linkTo(item.place))));

function linkTo(number) {
  if (number < 0) return null;
  const { file, line } = place(number);
  return make("button", { class: "link", onclick: () => goTo(number) }, `${file.name}:${line}`);
}

/** The lines with the most of anything. */
function hotLines() {
  const known = data.metrics.filter((item) => Object.values(kernel.counts.python).some((counts) => counts[item.key]));
  if (!known.length) return [];
  const key = known.some((item) => item.key === metricKey) ? metricKey : known[0].key;
  const rows = Object.entries(kernel.counts.python).sort((a, b) => (b[1][key] ?? 0) - (a[1][key] ?? 0) || (b[1].instructions ?? 0) - (a[1].instructions ?? 0)).slice(0, 12);
  const head = make("tr", {}, make("th", {}, "line"), make("th", {}, ""), ...known.map((item) => make("th", { class: "number", title: item.about }, item.name, estimate(item))));
  const made = card("Hottest lines", make("table", {}, head, ...rows.map(([number, counts]) => {
    const { file, line } = place(Number(number));
    return make("tr", {}, make("td", {}, linkTo(Number(number))), make("td", { class: "code" }, make("code", {}, (file.text.split("\n")[line - 1] ?? "").trim())),
      ...known.map((item) => make("td", { class: "number" }, counts[item.key] ? grouped(counts[item.key]) : "")));
  })));
  made.classList.add("broad");
  return [made];
}

function goTo(number) {
  show("stages");
  const pane = panes.find((item) => item.name === "source");
  pane.show(data.places[number][0]);
  pane.go(data.places[number][1]);
}

// ---- the whole -------------------------------------------------------------------------------------------------

const shownPanes = () => panes.filter((pane) => !pane.element.hidden);
const focused = () => panes.find((pane) => pane.element.contains(document.activeElement)) ?? shownPanes()[0];

function show(name) {
  view = name;
  all(".view").forEach((section) => { section.hidden = section.id !== name; });
  all("nav button").forEach((button) => button.setAttribute("aria-selected", button.dataset.view === name));
  ({ passes: showPasses, report: showReport, layouts: showLayouts, flow: showFlow, stages: () => {} })[name]();
  ({ stages: () => focused()?.view.focus(), passes: () => find("#pass-list").focus(), layouts: () => find("#layout-list").focus(), flow: () => find("#flow-graph").focus(), report: () => find("#report").focus() })[name]();
}

function toggle(name, wanted) {
  const pane = panes.find((item) => item.name === name);
  pane.element.hidden = !(wanted ?? pane.element.hidden);
  const button = find(`#choices [data-stage="${name}"]`);
  button.setAttribute("aria-pressed", !pane.element.hidden);
  kept.write("panes", shownPanes().map((item) => item.name));
  if (!pane.element.hidden) { pane.set(pinned); pane.view.requestMeasure(); if (pinned.place >= 0) pane.follow(pinned); }
}

function chooseMetric(key) {
  metricKey = key;
  find("#metric").value = key;
  find("#metric").title = metric().about;
  kept.write("metric", key);
  panes.forEach((pane) => pane.weigh());
  if (view === "report") showReport();
  if (view === "flow") showFlow();
}

function stepMetric(step) {
  const keys = [...find("#metric").options].map((option) => option.value);
  chooseMetric(keys[(keys.indexOf(metricKey) + step + keys.length) % keys.length]);
}

/** Go to the next line with heat in the pane, by heat. */
function nextHot(step) {
  const pane = focused();
  if (pane.name === "source") {
    nextHotPlace(step);
    return;
  }
  const lines = [...pane.heat].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([line]) => line);
  if (!lines.length) return;
  const now = pane.view.state.doc.lineAt(pane.view.state.selection.main.head).number;
  const at = lines.indexOf(now);
  pane.go(lines[(at + step + lines.length) % lines.length] ?? lines[0]);
}

/** The same over the lines of all files of Python. */
function nextHotPlace(step) {
  const places = Object.entries(kernel.counts.python).filter(([, counts]) => counts[metricKey] > 0)
    .sort((a, b) => b[1][metricKey] - a[1][metricKey] || a[0] - b[0]).map(([number]) => Number(number));
  if (!places.length) return;
  const at = places.indexOf(pinned.place);
  goTo(at < 0 ? places[step > 0 ? 0 : places.length - 1] : places[(at + step + places.length) % places.length]);
}

function stepPane(step) {
  const shown = shownPanes();
  const pane = shown[Math.min(Math.max(shown.indexOf(focused()) + step, 0), shown.length - 1)];
  const lines = pane.lines.get(pinned.place);
  pane.element.scrollIntoView({ inline: "nearest", block: "nearest" });
  if (lines) pane.go(lines.find((line) => pinned.ptx && pane.ptxLine(line) === pinned.ptx) ?? lines[0]);
  else pane.view.focus();
}

/** The stages that are shown at first: as many as the window is wide. */
function usual(known) {
  if (window.innerWidth >= WIDE_SCREEN) return known.filter((name) => name !== "python");
  const first = ["source", "sass", "ptx", "cute"].filter((name) => known.includes(name));
  const fit = first.slice(0, Math.max(1, Math.floor(window.innerWidth / PANE_WIDTH)));
  return fit.length < USUAL.length ? fit : USUAL;
}

function useKernel(number) {
  kernel = data.kernels[number];
  find("#kernel").value = String(number);
  pinned = NOTHING;
  hovered = null;
  chosenBlock = 0;
  panes.forEach((pane) => pane.view.destroy());
  const stages = kernel.stages.filter((stage) => stage.name !== "python");
  const traced = kernel.stages.find((stage) => stage.name === "python");
  panes = [new Pane("source", null), ...stages.map((stage) => new Pane(stage.name, stage)), ...(traced ? [new Pane("python", traced)] : [])];
  find("#panes").replaceChildren(...panes.map((pane) => pane.element));
  const known = panes.map((pane) => pane.name);
  find("#choices").replaceChildren(...known.map((name, at) => make("button", { "data-stage": name, onclick: () => toggle(name) }, make("kbd", {}, String(at + 1)), NAMES[name] ?? name)));
  const wanted = kept.read("panes", usual(known));
  panes.forEach((pane) => { pane.element.hidden = false; });
  known.forEach((name) => { if (!wanted.includes(name)) panes.find((pane) => pane.name === name).element.hidden = true; });
  known.forEach((name) => find(`#choices [data-stage="${name}"]`).setAttribute("aria-pressed", wanted.includes(name)));
  const first = Number(Object.keys(kernel.counts.python)[0] ?? kernel.stages.flatMap((stage) => stage.places).find((at) => at >= 0) ?? -1);
  if (first >= 0) panes[0].show(data.places[first][0]);
  panes.forEach((pane) => pane.weigh());
  describe(NOTHING);
  if (view !== "stages") show(view);
  if (first >= 0) showFirst(first);
}

/** Bring the beginning of the kernel into sight. */
function showFirst(number) {
  const pane = panes[0];
  const lines = pane.places.map((at, line) => (at >= 0 ? line + 1 : 0)).filter(Boolean);
  const start = Math.min(...lines.filter((line) => line <= data.places[number][1]), data.places[number][1]);
  const from = pane.view.state.doc.line(Math.max(start - 2, 1)).from;
  pane.view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "start" }) });
}

function useTheme(name) {
  document.documentElement.dataset.theme = name;
  find("#theme-name").textContent = name;
  const style = getComputedStyle(document.documentElement);
  colours.heat = style.getPropertyValue("--heat").trim();
  colours.accent = style.getPropertyValue("--accent").trim();
  panes.forEach((pane) => pane.drawRuler());
}

function otherTheme() {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  kept.write("theme", name);
  useTheme(name);
}

const KEYS = {
  s: () => show("stages"), p: () => show("passes"), r: () => show("report"), l: () => show("layouts"), f: () => show("flow"),
  h: () => stepMetric(1), H: () => stepMetric(-1), n: () => nextHot(1), N: () => nextHot(-1), t: otherTheme,
  k: () => useKernel((data.kernels.indexOf(kernel) + 1) % data.kernels.length),
  "?": () => find("#help").showModal(),
};
const STAGE_KEYS = {
  ArrowLeft: () => stepPane(-1), ArrowRight: () => stepPane(1), Enter: layoutsOfLine, Escape: () => hold(null),
  "/": () => { focused().view.focus(); CodeMirror.openSearchPanel(focused().view); },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, .cm-panel, dialog[open]")) return;
  const number = Number(event.key);
  let action = KEYS[event.key] ?? (view === "stages" ? STAGE_KEYS[event.key] : undefined);
  if (view === "stages" && number >= 1 && number <= panes.length) action = () => toggle(panes[number - 1].name);
  if (event.key === "Enter" && event.target.closest("button")) return;
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

/** A page that is served asks whether there is a newer one. */
async function watch(url) {
  let version = null;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    let state;
    try { state = await (await fetch(url)).json(); } catch { state = { version, problem: "the server is gone: start `tilewright explore --serve` again" }; }
    const problem = find("#problem");
    problem.hidden = !state.problem;
    problem.textContent = state.problem ?? "";
    version ??= state.version;
    if (state.version !== version) {
      sessionStorage.setItem("tilewright.now", JSON.stringify({ view, kernel: data.kernels.indexOf(kernel), at: pinned.place >= 0 ? data.places[pinned.place] : null }));
      location.reload();
      return;
    }
  }
}

/** After a reload: the view, kernel and line as they were. */
function resume() {
  const before = JSON.parse(sessionStorage.getItem("tilewright.now") ?? "null");
  sessionStorage.removeItem("tilewright.now");
  useKernel(Math.min(before?.kernel ?? 0, data.kernels.length - 1));
  const at = before?.at ? placeOf.get(before.at.join(" ")) : undefined;
  if (at !== undefined) goTo(at);
  show(before?.view ?? "stages");
}

async function start() {
  data = await unpacked();
  data.places.forEach(([file, line], number) => placeOf.set(`${file} ${line}`, number));
  for (const [inner, outer] of data.calls) {
    callers.set(inner, outer);
    for (const number of outer) callees.set(number, [...(callees.get(number) ?? []), inner]);
  }
  find("#function").textContent = data.function;
  find("#arch").textContent = data.arch;
  find("#kernel").append(...data.kernels.map((item, number) => make("option", { value: number }, item.name)));
  find("#kernel").hidden = data.kernels.length < 2;
  find("#kernel").addEventListener("change", (event) => useKernel(Number(event.target.value)));
  const counted = data.metrics.filter((item) => data.kernels.some((one) => ["ptx", "sass", "python"].some((stage) => Object.values(one.counts[stage]).some((counts) => counts[item.key]))));
  find("#metric").append(...counted.map((item) => make("option", { value: item.key }, item.estimate ? `${item.name} (estimate)` : item.name)));
  find("#heat-choice").hidden = !counted.length;
  const before = kept.read("metric", "sectors");
  metricKey = counted.some((item) => item.key === before) ? before : counted[0]?.key ?? "";
  find("#metric").addEventListener("change", (event) => chooseMetric(event.target.value));
  find("#metric").value = metricKey;
  find("#flow-graph").addEventListener("keydown", flowKeys);
  find("#theme").addEventListener("click", otherTheme);
  find("#show-help").addEventListener("click", () => find("#help").showModal());
  all("nav button").forEach((button) => button.addEventListener("click", () => show(button.dataset.view)));
  document.addEventListener("keydown", onKey, true);
  useTheme(kept.read("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  resume();
  if (document.documentElement.dataset.watch) watch(document.documentElement.dataset.watch);
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  find("#problem").hidden = false;
  find("#problem").textContent = `The page could not be shown: ${error.stack ?? error}`;
});
