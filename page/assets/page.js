"use strict";
// The page of a run. It reads snapshot.json, then events (live) or moments at a time (replay); it never writes.

const $ = (id) => document.getElementById(id);

function make(name, classes, ...children) {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  for (const child of children) made.append(child); // texts become text nodes
  return made;
}

// ---- numbers for people ----
function short(value) {
  if (value === null || value === undefined) return "–";
  const units = ["", "k", "M", "G", "T", "P"];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit + 1 < units.length) { value /= 1000; ++unit; }
  const digits = Math.abs(value) >= 99.95 || (unit === 0 && Number.isInteger(value)) ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + units[unit];
}
const whole = (value) => (value === null || value === undefined ? "–" : String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f"));
const nats = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  seconds = Math.round(seconds);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ${String(Math.floor(seconds / 60) % 60).padStart(2, "0")} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds / 3600) % 24} h`;
}
function clock(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

const run = { mode: "live", moment: null, story: null };
let grownWanted = false, map = null, lossCurve = null, rateCurve = null, source = null, gone = false, drawing = false;

// ---- first glance ----
function tile(title, figure, small, words, look, extra) {
  const strong = make("strong", "", figure);
  if (small) strong.append(make("small", "", ` ${small}`));
  const made = make("div", `tile ${look || ""}`, make("b", "", title), strong);
  if (extra) made.append(extra);
  made.append(make("span", "", words || ""));
  return made;
}

function bar(part, marks) {
  const made = make("div", "bar");
  made.setAttribute("aria-hidden", "true");
  const fill = make("i");
  fill.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  made.append(fill);
  for (const mark of marks || []) {
    const line = make("u");
    line.style.left = `${Math.max(0, Math.min(1, mark)) * 100}%`;
    made.append(line);
  }
  return made;
}

function spark() {
  const h = run.story.history, now = run.moment.time;
  const full = Math.min(h.per_second.length, Math.floor((now - h.begin) / h.width_s)); // the last bin is not full yet
  const rates = h.per_second.slice(Math.max(0, full - 120), full);
  if (rates.length < 2) return null;
  const most = Math.max(1e-9, ...rates), step = 100 / (rates.length - 1);
  return shape("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("path", { d: `M${rates.map((rate, i) => `${(i * step).toFixed(2)} ${(22 - 20 * rate / most).toFixed(2)}`).join("L")}` }));
}

function drawGlance() {
  const { tokens, loss, count, stages, weakest, run: of, seen_by: own } = run.moment;
  const serving = stages.reduce((sum, s) => sum + s.serving, 0), all = stages.reduce((sum, s) => sum + s.members, 0);
  const empty = stages.findIndex((s) => s.serving === 0);
  const tiles = [];
  tiles.push(tile("Tokens", short(tokens.done), tokens.total ? `of ${short(tokens.total)}` : "",
    own && !stages.length ? "not known yet" : of.ended ? "the run is over" : tokens.left_s !== null ? `${span(tokens.left_s)} left` : tokens.total ? "time left not known yet" : "no end is set",
    "", tokens.total ? bar(tokens.done / tokens.total) : null));
  const worst = Math.max(loss.first || 0, loss.unigram || 0);
  const marks = worst ? [loss.unigram, loss.bigram].filter((v) => v !== null).map((v) => v / worst) : [];
  const beside = loss.unigram === null ? `step ${whole(loss.step)}, nats a token`
    : `text alone: unigram ${loss.unigram.toFixed(2)}, bigram ${loss.bigram.toFixed(2)}`;
  tiles.push(tile("Loss", nats(loss.newest), "", beside, "", loss.newest !== null && worst ? bar(loss.newest / worst, marks) : null));
  if (!own) tiles.push(tile(loss.validated_at_end ? "Validation, at the end" : "Validation", nats(loss.validation), "", loss.validation === null ? "not estimated yet" : "nats a token, on text that is not trained on"));
  tiles.push(tile("Tokens a second", short(tokens.per_second), "", "over the last 10 s; the line is the last minutes", "", spark()));
  if (!stages.length) tiles.push(tile("Peers", "–", "", "not known yet"));
  else tiles.push(tile("Peers", String(serving), all === serving ? "serve" : `of ${all} serve`,
    empty >= 0 ? `stage ${empty} has nobody` : weakest === null ? "every stage has as many" : `weakest: stage ${weakest} with ${stages[weakest].serving}`,
    empty >= 0 ? "bad" : weakest !== null && stages[weakest].serving === 1 ? "warn" : ""));
  if (own) { // a peer's page: what was counted, it does not see
    tiles.push(tile("This machine", short(own.tokens), "tokens accepted", `${whole(own.microbatches)} microbatches in this session; ${own.state}${own.reason ? ` (${own.reason})` : ""}`));
    $("glance").replaceChildren(...tiles);
    return;
  }
  tiles.push(tile("Counted twice", whole(count.twice), count.twice ? "✕" : "✓",
    `${whole(count.secured)} secured, ${whole(count.lost)} lost by name, ${whole(count.undecided)} not decided yet`, count.twice ? "bad" : "good"));
  tiles.push(tile("Gradients late by", run.moment.staleness === null ? "–" : run.moment.staleness.toFixed(2), "steps",
    run.moment.staleness === null ? "not measured yet" : "of the latest stage, or of all where files say it"));
  tiles.push(tile("Faults", whole(run.moment.faults), "", run.moment.faults ? "below, in words" : "none so far", run.moment.faults ? "warn" : ""));
  $("glance").replaceChildren(...tiles);
}

function drawHead() {
  const { run: of, time } = run.moment;
  $("name").textContent = of.name || "a run";
  document.title = `${of.name || "run"} · shoal`;
  $("key").textContent = (of.key ? of.key.slice(0, 16) : "") + (run.moment.seen_by ? `, as peer ${run.moment.seen_by.peer} sees it` : "");
  const state = gone ? ["its process has gone; this is how it stood", "bad"] : of.ended ? [`ended: ${of.ended}`, ""] : of.parked ? [`parked: ${of.parked}`, "bad"]
    : run.moment.tokens.per_second === null ? [run.moment.seen_by.state, ""] : run.moment.tokens.per_second > 0 ? ["training", "good"] : ["waiting", ""];
  $("state").textContent = state[0];
  $("state").className = `chip ${state[1]}`;
  $("clock").textContent = of.begun ? `${run.moment.seen_by ? "seen " : ""}for ${span(time - of.begun)}` : "";
}

// Its key, and what its owner calls it.
function called(peer) {
  const row = peer && run.story && run.story.work.find((r) => r.peer === peer);
  return row && row.name ? `${peer} (${row.name})` : peer;
}

function tellPeer(member) {
  if (!member) { $("peer").textContent = "A peer's figures stand here when it is chosen."; return; }
  const word = lookOf(member)[2];
  const parts = [`Peer ${called(member.peer)}, stage ${member.stage}, ${word}${member.reason ? ` (${member.reason})` : ""}`];
  if (!member.over && member.per_second !== null) parts.push(`${short(member.per_second)} tokens a second`);
  if (member.microbatches !== null) parts.push(`${whole(member.microbatches)} microbatches accepted (${short(member.tokens)} tokens)`);
  if (member.lost) parts.push(`${whole(member.lost)} lost with it`);
  if (member.sent !== null) parts.push(`up ${short(member.sent)}B, down ${short(member.received)}B`);
  if (member.reach === "none" || member.reach === "local") parts.push(member.reach === "none" ? "nobody dials it" : "its neighbours alone dial it");
  if (member.asked_to_move && !member.over) parts.push("asked to move");
  if (member.quiet_s !== null && member.quiet_s >= QUIET_S) parts.push(`nothing heard for ${member.quiet_s.toFixed(0)} s`);
  $("peer").textContent = `${parts.join(" · ")}.`;
}

// ---- what happened, in words ----
const TALE_SIGNS = { lost: "✕", left: "→", joined: "+", moves: "⇄", round: "↻", "went back": "↩", unreachable: "⊘", contradiction: "!", word: "?" };

function taleWords(tale) {
  const stage = tale.stage === null ? "" : ` of stage ${tale.stage}`;
  switch (tale.what) {
    case "lost": return `Peer ${called(tale.peer)}${stage} was lost: ${tale.words}.`;
    case "left":
      if (run.moment.seen_by) return `Peer ${called(tale.peer)}${stage} is gone; why, members are not told.`;
      return `Peer ${called(tale.peer)}${stage} left${tale.words && tale.words !== "left" ? `: ${tale.words}` : " in order"}.`;
    case "joined": return `Peer ${called(tale.peer)} joined stage ${tale.stage}${tale.words ? `: ${tale.words}` : ""}.`;
    case "moves": return `Peer ${called(tale.peer)}${stage} is asked to move: ${tale.words}.`;
    case "unreachable": return `A joiner, ${called(tale.peer)}, can be dialled by nobody, and takes part over links that it dials: ${tale.words}.`;
    case "went back": return `Stage ${tale.stage} went back ${tale.words}.`;
    case "round": return `Stage ${tale.stage}: ${tale.words}.`;
    case "contradiction": return `A contribution counts twice${stage}: ${tale.words}.`;
    default: return `Peer ${called(tale.peer)}${stage} says what the log does not know: ${tale.words}.`;
  }
}

function taleCost(tale) {
  const parts = [];
  if (tale.felt) parts.push("the rate still feels it");
  else if (tale.felt_s !== null) parts.push(tale.felt_s < 1 ? "the rate did not feel it" : `the rate felt it for ${span(tale.felt_s)}`);
  if (tale.lost) {
    const more = tale.lost - tale.named.length;
    parts.push(`${tale.lost} contribution${tale.lost > 1 ? "s" : ""} lost by name: microbatch${tale.lost > 1 ? "es" : ""} ${tale.named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`);
  } else if (tale.what === "lost") parts.push("nothing was lost");
  return parts.join("; ");
}

function drawTales() {
  const now = run.moment.time, begin = run.moment.run.begun || 0, all = $("all-tales").checked;
  const shown = run.story.tales.filter((t) => t.time <= now && (all || t.fault || t.what === "moves" || (run.moment.seen_by && t.what === "left"))).reverse().slice(0, 100);
  const items = shown.map((tale) => {
    const time = make("time", "", clock(tale.time - begin));
    const sign = make("span", "sign", TALE_SIGNS[tale.what] || "·");
    sign.setAttribute("aria-hidden", "true");
    const item = make("li", tale.fault ? "fault" : "change", time, sign, make("p", "", taleWords(tale)));
    const cost = taleCost(tale);
    if (cost) item.append(make("p", "", cost));
    return item;
  });
  if (!items.length) items.push(make("li", "", make("time", "", ""), make("span", "sign", "✓"), make("p", "", run.moment.seen_by ? "Nobody went while this page was there." : "No fault so far.")));
  if (run.story.tales_forgotten) items.push(make("li", "", make("time", "", ""), make("span", "sign", "…"), make("p", "", `${run.story.tales_forgotten} older ones are not kept.`)));
  $("tales").replaceChildren(...items);
}

function drawWork() {
  // In a replay the story is the whole run's, and the moment has what was by then.
  const byPeer = new Map();
  if (run.mode === "replay") {
    for (const m of run.moment.members) {
      const row = byPeer.get(m.peer) || { ...run.story.work.find((r) => r.peer === m.peer), peer: m.peer, tokens: 0, microbatches: 0, lost: 0, sent: null, received: null };
      row.tokens += m.tokens; row.microbatches += m.microbatches; row.lost += m.lost;
      if (m.sent !== null) { row.sent = (row.sent || 0) + m.sent; row.received = (row.received || 0) + m.received; }
      byPeer.set(m.peer, row);
    }
  }
  const atEnd = run.mode === "replay" && run.moment.time >= run.to - 0.5;
  const rows = run.mode === "replay" && !atEnd ? [...byPeer.values()].sort((a, b) => b.tokens - a.tokens) : run.story.work;
  const most = Math.max(1, ...rows.map((r) => r.tokens)), bytes = rows.some((r) => r.sent !== null);
  $("work-head").replaceChildren(...["Peer", "Tokens accepted", "Microbatches", "Lost", ...(bytes ? ["Up", "Down"] : [])].map((t) => make("th", "", t)));
  $("work").replaceChildren(...rows.slice(0, 64).map((row) => {
    const share = make("i", "share");
    share.style.width = `${Math.round((60 * row.tokens) / most)}px`;
    const cells = [make("td", "", row.peer || "others", row.name ? make("small", "", row.name) : ""), make("td", "", share, short(row.tokens)), make("td", "", whole(row.microbatches)), make("td", "", whole(row.lost))];
    if (bytes) cells.push(make("td", "", row.sent === null ? "–" : `${short(row.sent)}B`), make("td", "", row.received === null ? "–" : `${short(row.received)}B`));
    return make("tr", "", ...cells);
  }));
  const b = run.moment.bytes;
  $("bytes").textContent = `${b.of}: up ${short(b.up_per_second)}B/s, down ${short(b.down_per_second)}B/s, ${short(b.sent)}B sent` + (b.rounds > 0 ? `, ${Math.round(100 * b.rounds / b.sent)} % by rounds` : "") +
    (b.codec_ratio === null ? "" : `; tensors ${b.codec_ratio.toFixed(1)} times smaller`) + (b.base_hits === null ? "" : `; ${Math.round(100 * b.base_hits)} % as differences`);
}

// ---- curves ----
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function rowsOf() {
  const h = run.story.history, loss = run.moment.loss, now = run.moment.time, begin = run.moment.run.begun || h.begin || 0;
  const lossRows = [], rateRows = [], ticks = [];
  for (let i = 0; i < h.loss.length; ++i) {
    const time = h.begin + i * h.width_s;
    if (time > now) break;
    const x = time + h.width_s / 2 - begin;
    lossRows.push([x, h.loss[i], h.validation[i], loss.unigram, loss.bigram]);
    // The bin that is not full yet would look like a fall.
    if (time + h.width_s <= now) rateRows.push([x, h.per_second[i]]);
    if (h.rounds[i] || h.faults[i]) ticks.push([x, h.rounds[i], h.faults[i]]);
  }
  return { lossRows, rateRows, ticks };
}

let ticks = [], synced = false;
function drawTicks(canvas, area, chart) {
  const faultInk = colour("lost"), roundInk = colour("dim");
  for (const [x, rounds, faults] of ticks) {
    const at = chart.toDomXCoord(x);
    if (at < area.x || at > area.x + area.w) continue;
    if (rounds) { canvas.fillStyle = roundInk; canvas.globalAlpha = 0.55; canvas.fillRect(at, area.y + area.h - 5, 1, 5); }
    if (faults) {
      canvas.fillStyle = faultInk;
      canvas.globalAlpha = 0.55; canvas.fillRect(at, area.y, 1, area.h);
      canvas.globalAlpha = 1; canvas.beginPath(); canvas.moveTo(at - 5, area.y); canvas.lineTo(at + 5, area.y); canvas.lineTo(at, area.y + 8); canvas.fill();
    }
    canvas.globalAlpha = 1;
  }
}

function drawCurves() {
  if (typeof Dygraph === "undefined") return;
  // Its legend would put styles into elements, which this page's policy forbids; ours stands below.
  Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];
  const rows = rowsOf();
  ticks = rows.ticks;
  if (!rows.lossRows.length) return;
  if (rows.rateRows.length === 0) rows.rateRows.push([rows.lossRows[0][0], null]);
  if (lossCurve) {
    const zoomed = lossCurve.isZoomed("x");
    lossCurve.updateOptions({ file: rows.lossRows, ...(zoomed ? {} : { dateWindow: null }) });
    rateCurve.updateOptions({ file: rows.rateRows, dateWindow: zoomed ? lossCurve.xAxisRange() : lossCurve.xAxisExtremes() });
    return;
  }
  const shared = {
    legend: "never", animatedZooms: false, axisLabelFontSize: 12, gridLineColor: colour("line"), axisLineColor: colour("line"), highlightCircleSize: 4, strokeWidth: 2, xRangePad: 6,
    axes: { x: { axisLabelFormatter: clock, valueFormatter: clock }, y: { axisLabelWidth: 46 } },
    highlightCallback: (event, x) => tellPoint(x), unhighlightCallback: () => { $("point").textContent = ""; },
    zoomCallback: (from, to) => follow(from, to),
  };
  lossCurve = new Dygraph($("loss-curve"), rows.lossRows, { ...shared, labels: ["s", "loss", "validation", "unigram", "bigram"], connectSeparatedPoints: true,
    underlayCallback: drawTicks, colors: ["loss", "validation", "unigram", "bigram"].map(colour),
    series: { validation: { drawPoints: true, pointSize: 3 }, unigram: { strokePattern: [7, 4], strokeWidth: 1.2 }, bigram: { strokePattern: [2, 4], strokeWidth: 1.2 } } });
  rateCurve = new Dygraph($("rate-curve"), rows.rateRows, { ...shared, labels: ["s", "tokens a second"], colors: [colour("rate")], fillGraph: true, includeZero: true,
    underlayCallback: drawTicks, axes: { x: shared.axes.x, y: { axisLabelWidth: 46, axisLabelFormatter: short } }, dateWindow: lossCurve.xAxisExtremes() });
  drawCurveLegend();
}

function drawCurveLegend() {
  const lines = [["loss", "loss", ""], ["validation", "validation ●", ""], ["unigram", "the text's unigram entropy", "7 4"], ["bigram", "its bigram entropy", "2 4"], ["rate", "tokens a second", ""]];
  const known = run.moment.loss.unigram !== null;
  const items = lines.filter(([name]) => known || !name.endsWith("gram")).map(([name, word, dash]) => {
    const line = shape("line", { x1: 0, y1: 9, x2: 18, y2: 9, "stroke-width": 2.5, "stroke-dasharray": dash || "none" });
    line.style.stroke = `var(--${name})`;
    return make("li", "", shape("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, line), word);
  });
  const fault = shape("path", { d: "M4 3h10l-5 8z" });
  fault.style.fill = "var(--lost)";
  items.push(make("li", "", shape("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, fault), "fault"));
  const round = shape("path", { d: "M9 8v8" });
  round.style.stroke = "var(--dim)";
  items.push(make("li", "", shape("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, round), "round"));
  $("curve-legend").replaceChildren(...items);
}

function tellPoint(x) {
  const h = run.story.history, begin = run.moment.run.begun || h.begin;
  const i = Math.floor((x + begin - h.begin) / h.width_s);
  if (i < 0 || i >= h.loss.length) return;
  const parts = [clock(x), `loss ${nats(h.loss[i])}`];
  if (h.loss[i] !== null && h.loss_most[i] > h.loss_least[i]) parts.push(`(${nats(h.loss_least[i])} to ${nats(h.loss_most[i])})`);
  if (h.validation[i] !== null) parts.push(`validation ${nats(h.validation[i])}`);
  parts.push(`${short(h.per_second[i])} tokens a second`);
  if (h.rounds[i]) parts.push(`${h.rounds[i]} round${h.rounds[i] > 1 ? "s" : ""}`);
  if (h.faults[i]) parts.push(`${h.faults[i]} fault${h.faults[i] > 1 ? "s" : ""}`);
  $("point").textContent = parts.join("  ");
}

function follow(from, to) {
  if (synced) return;
  synced = true;
  lossCurve.updateOptions({ dateWindow: [from, to] });
  rateCurve.updateOptions({ dateWindow: [from, to] });
  synced = false;
}

function zoom(how) {
  if (!lossCurve) return;
  const [least, most] = lossCurve.xAxisExtremes(), [from, to] = lossCurve.xAxisRange(), width = to - from, middle = (from + to) / 2;
  if (how === "all") { lossCurve.updateOptions({ dateWindow: null }); rateCurve.updateOptions({ dateWindow: lossCurve.xAxisExtremes() }); return; }
  let window = { in: [middle - width / 4, middle + width / 4], out: [middle - width, middle + width], back: [from - width / 2, to - width / 2], on: [from + width / 2, to + width / 2] }[how]
    || [most - Number(how), most];
  window = [Math.max(least, window[0]), Math.min(most, Math.max(window[1], window[0] + 1))];
  if (window[1] > window[0]) follow(window[0], window[1]);
}

// ---- drawing ----
function draw(grown) {
  grownWanted = grownWanted || grown;
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (!run.moment || !run.moment.tokens) return;
    drawHead();
    drawGlance();
    map.draw(run.moment);
    $("map-words").textContent = run.moment.members_left_out ? `${run.moment.members_left_out} more peers are not shown` : "";
    drawTales();
    drawWork();
    if (grownWanted || !lossCurve) drawCurves();
    grownWanted = false;
    if (!document.body.dataset.drawn) performance.mark("drawn");
    document.body.dataset.drawn = String(run.moment.time);
  });
}

function tellNote(text) {
  $("note").textContent = text;
  $("note").hidden = !text;
}

// ---- live ----
function listen() {
  if (source) source.close();
  source = new EventSource("events");
  source.addEventListener("open", () => { gone = false; });
  source.addEventListener("moment", (event) => { run.moment = JSON.parse(event.data); draw(false); });
  source.addEventListener("story", (event) => { run.story = JSON.parse(event.data); draw(true); });
  source.addEventListener("behind", (event) => tellNote(`This page was too slow and was cut off: ${event.data} updates were skipped. The figures are those of now.`));
  source.addEventListener("error", () => { gone = true; drawHead(); });
}
// A browser has six connections for one place: a page that nobody looks at gives its own back.
document.addEventListener("visibilitychange", () => {
  if (run.mode !== "live") return;
  if (document.hidden && source) { source.close(); source = null; } else if (!document.hidden) listen();
});

// ---- replay ----
let playing = false, asked = false, shownAt = 0;
async function showAt(time) {
  shownAt = Math.max(run.from, Math.min(run.to, time));
  $("slider").value = String(Math.round(1000 * (shownAt - run.from) / Math.max(1e-6, run.to - run.from)));
  $("when").textContent = `${clock(shownAt - run.from)} of ${clock(run.to - run.from)}`;
  if (asked) return;
  asked = true;
  try {
    const answer = await fetch(`moment.json?at=${shownAt}`);
    run.moment = await answer.json();
    draw(true);
  } catch (failure) {
    gone = true;
    play(false);
    drawHead();
  }
  asked = false;
}
function play(on) {
  playing = on;
  $("play").textContent = on ? "Pause" : "Play";
  if (on && shownAt >= run.to - 0.1) shownAt = run.from;
}
const TURN_S = 0.2;
function turn() {
  if (!playing) return;
  showAt(shownAt + TURN_S * Number($("speed").value));
  if (shownAt >= run.to) play(false);
}
function startReplay(snapshot) {
  Object.assign(run, snapshot.replay);
  $("replay").hidden = false;
  const speeds = [...$("speed").options].map((o) => Number(o.value));
  $("speed").value = String(speeds.reduce((best, one) => (Math.abs(one - run.speed) < Math.abs(best - run.speed) ? one : best), speeds[0]));
  $("play").addEventListener("click", () => play(!playing));
  $("slider").addEventListener("input", () => showAt(run.from + (run.to - run.from) * Number($("slider").value) / 1000));
  setInterval(turn, 1000 * TURN_S);
  showAt(run.to);
}

async function start() {
  map = new SwarmMap($("map"), $("legend"), tellPeer);
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoom(button.dataset.zoom));
  $("all-tales").addEventListener("change", drawTales);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
  try {
    const snapshot = await (await fetch("snapshot.json")).json();
    run.mode = snapshot.mode;
    run.moment = snapshot.moment;
    run.story = snapshot.story;
    draw(true);
    if (run.mode === "live") listen(); else startReplay(snapshot);
  } catch (failure) {
    tellNote("The run's figures could not be read. Is its process still there?");
  }
}
start();
