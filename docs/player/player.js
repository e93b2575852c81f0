// The tile player: shows a trace of --trace-tiles, event by event. It computes no attention: every number that it shows stands in the trace.
// A trace comes from player/traces/NAME.js, which puts itself into window.flashstepsTraces, or from a file that the reader opens.
(function () {
  "use strict";

  const tracesFolder = new URL("traces/", document.currentScript.src).href;
  const $ = (id) => document.getElementById("player-" + id);
  const root = document.getElementById("player");
  const reads = ["load"], writes = ["store", "fill"];
  const symbols = { q: "Q", k: "K", v: "V", o: "O", lse: "L", m: "m", l: "\u2113", s: "S, P" };
  const largestFile = 64 * 1024 * 1024;

  let trace = null;   // what is shown
  let at = 0;         // how many of its events have happened
  let state = null;   // what is so after them
  let timer = 0;      // of playing; 0 when paused
  let drawing = null; // the parts of the picture that change

  // ---- What a trace is ------------------------------------------------------------------------------------------------

  const isCount = (x) => Number.isSafeInteger(x) && x >= 0;
  const isNumber = (x) => typeof x === "number" || x === "inf" || x === "-inf" || x === "nan";
  const isList = (x, length, of) => Array.isArray(x) && x.length === length && x.every(of);
  const isObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
  const isRange = (x, n) => isList(x, 2, isCount) && x[0] <= x[1] && x[1] <= n;

  /// The rows and columns of every tensor that may be moved.
  function tensorsOf(shape) {
    return { q: [shape.seq_q, shape.head_dim], k: [shape.seq_k, shape.head_dim], v: [shape.seq_k, shape.value_dim], o: [shape.seq_q, shape.value_dim],
             lse: [shape.seq_q, 1], m: [shape.seq_q, 1], l: [shape.seq_q, 1] };
  }

  /// What is wrong with something that should be a trace, or "".
  function faultOf(x) {
    if (!isObject(x)) return "it is not a JSON object";
    if (x.flashsteps !== "tiles") return "it does not say \"flashsteps\": \"tiles\", as a file of --trace-tiles does";
    if (x.version !== 1) return "it is of version " + JSON.stringify(x.version) + ", this player knows version 1";
    for (const name of ["step", "head"]) if (!isCount(x[name])) return name + " is not a number from 0 on";
    for (const name of ["name", "form"]) if (typeof x[name] !== "string") return name + " is not a text";
    if (!isObject(x.shape)) return "shape is missing";
    for (const name of ["seq_q", "seq_k", "head_dim", "value_dim"]) if (!isCount(x.shape[name])) return "shape." + name + " is not a number from 0 on";
    if (!isObject(x.tiles) || !(isCount(x.tiles.br) && isCount(x.tiles.bc) && x.tiles.br > 0 && x.tiles.bc > 0)) return "tiles.br and tiles.bc are not numbers from 1 on";
    if (typeof x.causal !== "boolean" || (x.causal && !Number.isSafeInteger(x.diagonal))) return "causal or diagonal is missing";
    if (typeof x.o_is_normalised !== "boolean") return "o_is_normalised is missing";
    if (!isCount(x.capacity)) return "capacity is not a number from 0 on";
    const { seq_q, seq_k, value_dim } = x.shape;
    const rowTiles = Math.ceil(seq_q / x.tiles.br), columnTiles = Math.ceil(seq_k / x.tiles.bc);
    if (rowTiles * columnTiles > 4096) return "it has more than 4096 tiles";
    const isRowOfO = (row) => isList(row, value_dim, isNumber);
    if (!isList(x.o, seq_q, isRowOfO) || !isList(x.lse, seq_q, isNumber)) return "o and lse do not have a row for every query";
    if (!isObject(x.totals) || !["reads", "writes", "peak"].every((name) => isCount(x.totals[name]))) return "totals are missing";
    if (!Array.isArray(x.events)) return "events are missing";
    const tensors = tensorsOf(x.shape);
    const has = (table, name) => Object.prototype.hasOwnProperty.call(table, name);
    let last = { reads: 0, writes: 0, peak: 0 };
    const eventIsRight = (e) => {
      if (!isObject(e)) return false;
      switch (e.event) {
        case "load": case "store": case "fill":
          return has(tensors, e.tensor) && isRange(e.rows, tensors[e.tensor][0]) && isCount(e.elements) && isCount(e.reads) && isCount(e.writes);
        case "alive": case "dies":
          return isCount(e.tile) && (e.name === null || has(symbols, e.name)) && isCount(e.elements) && isCount(e.on_chip) && isCount(e.peak);
        case "visit":
          return isCount(e.i) && e.i < rowTiles && isCount(e.j) && e.j < columnTiles && isRange(e.rows, seq_q) && isRange(e.keys, seq_k) && ["skip", "full", "partial"].includes(e.kind);
        case "values":
          return isCount(e.i) && e.i < rowTiles && isCount(e.j) && e.j < columnTiles && isRange(e.rows, seq_q) && isList(e.m, e.rows[1] - e.rows[0], isNumber)
                 && isList(e.l, e.rows[1] - e.rows[0], isNumber) && isList(e.o, e.rows[1] - e.rows[0], isRowOfO);
        default:
          return false;
      }
    };
    for (let n = 0; n < x.events.length; ++n) {
      const e = x.events[n];
      if (!eventIsRight(e)) return "event " + (n + 1) + " is not one that this player knows";
      last = { reads: e.reads ?? last.reads, writes: e.writes ?? last.writes, peak: e.peak ?? last.peak };
    }
    for (const name of ["reads", "writes", "peak"]) if (last[name] !== x.totals[name]) return "its events end with " + name + " " + last[name] + ", its totals say " + x.totals[name];
    return "";
  }

  // ---- What is so after some events -------------------------------------------------------------------------------------

  function before(trace) {
    const traffic = {};
    for (const name of drawnTensors(trace)) traffic[name] = { read: 0, written: 0 };
    return { reads: 0, writes: 0, onChip: 0, peak: 0, live: new Map(), moves: new Map(), traffic, kinds: new Map(), now: null, values: new Map(), stored: new Set(), loaded: null };
  }

  function apply(state, e) {
    if (reads.includes(e.event) || writes.includes(e.event)) {
      state.reads = e.reads, state.writes = e.writes;
      state.traffic[e.tensor][e.event === "load" ? "read" : "written"] += e.elements;
      const key = e.event + " " + e.tensor + " " + e.rows[0];
      state.moves.set(key, (state.moves.get(key) || 0) + 1);
      state.loaded = e.event === "load" ? e.rows : null;
      if (e.event === "store" && e.tensor === "lse") for (let i = e.rows[0]; i < e.rows[1]; ++i) state.stored.add(i);
    } else if (e.event === "alive") {
      state.onChip = e.on_chip, state.peak = e.peak;
      state.live.set(e.tile, { name: e.name, elements: e.elements, rows: state.loaded });
      state.loaded = null;
    } else if (e.event === "dies") {
      state.onChip = e.on_chip, state.peak = e.peak;
      state.live.delete(e.tile);
    } else if (e.event === "visit") {
      state.kinds.set(e.i + " " + e.j, e.kind);
      state.now = e;
    } else if (e.event === "values") {
      for (let i = e.rows[0]; i < e.rows[1]; ++i) {
        if (!state.values.has(i)) state.values.set(i, []);
        state.values.get(i).push(e);
      }
    }
  }

  // ---- Words and numbers ------------------------------------------------------------------------------------------------

  const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  function shown(x) {
    if (x === "-inf") return "\u2212\u221e";
    if (x === "inf") return "\u221e";
    if (x === "nan") return "NaN";
    const text = x !== 0 && (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-4) ? x.toExponential(2) : String(Number(x.toPrecision(4)));
    return text.replace("-", "\u2212");
  }
  const plural = (n, one) => grouped(n) + " " + one + (n === 1 ? "" : "s");
  const rowsText = (rows) => (rows[1] - rows[0] === 0 ? "no rows" : rows[1] - rows[0] === 1 ? "row " + rows[0] : "rows " + rows[0] + " to " + (rows[1] - 1));
  const span = (rows) => (rows[1] - rows[0] === 1 ? String(rows[0]) : rows[0] + "\u2013" + (rows[1] - 1));
  const nameOf = (tile) => (tile.name === null ? "temporary" : symbols[tile.name]);

  function describe(n) {
    if (trace.events.length === 0) return "Nothing happens: there is no query.";
    if (n === 0) return "Nothing has happened yet: all tensors lie in slow memory, the chip is empty.";
    const e = trace.events[n - 1];
    switch (e.event) {
      case "load": return "Load " + symbols[e.tensor] + ", " + rowsText(e.rows) + ": " + plural(e.elements, "element") + " read.";
      case "store": return "Store " + symbols[e.tensor] + ", " + rowsText(e.rows) + ": " + plural(e.elements, "element") + " written.";
      case "fill": return "Fill " + symbols[e.tensor] + ", " + rowsText(e.rows) + ", with its first value: " + plural(e.elements, "element") + " written.";
      case "alive": return (e.name === null ? "A temporary" : e.name === "s" ? "S" : symbols[e.name]) + " begins to live on chip: " + plural(e.elements, "element") + ", " + grouped(e.on_chip) + " in all.";
      case "dies": return (e.name === null ? "A temporary" : e.name === "s" ? "P" : symbols[e.name]) + " is given up: " + plural(e.elements, "element") + " less, " + grouped(e.on_chip) + " in all.";
      case "visit": {
        const where = "Tile (" + e.i + ", " + e.j + "), queries " + span(e.rows) + ", keys " + span(e.keys) + ": ";
        return where + { full: trace.causal ? "full, every query sees every key." : "its scores are computed.", partial: "partial, some pairs are masked.", skip: "skipped, no query sees a key." }[e.kind];
      }
      default: return "Tile (" + e.i + ", " + e.j + ") is done: m, \u2113 and O of " + rowsText(e.rows) + " include its keys.";
    }
  }

  function titleOf(trace) {
    const { seq_q, seq_k, head_dim, value_dim } = trace.shape;
    return trace.name + ", " + trace.form + ": " + plural(seq_q, "quer").replace(/quers$/, "queries").replace(/quer$/, "query") + " by " + plural(seq_k, "key") + ", d " + head_dim
           + (value_dim === head_dim ? "" : ", value dimension " + value_dim) + ", tiles of " + trace.tiles.br + " \u00d7 " + trace.tiles.bc + (trace.causal ? ", causal" : "");
  }

  // ---- The picture --------------------------------------------------------------------------------------------------------

  function svg(name, attributes, parent) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
  }
  function html(name, text, parent, className) {
    const element = document.createElement(name);
    element.textContent = text;
    if (className) element.className = className;
    if (parent) parent.append(element);
    return element;
  }
  const cut = (n, size) => Array.from({ length: Math.ceil(n / size) }, (_, t) => [t * size, Math.min((t + 1) * size, n)]);

  /// The tensors that have a strip: those of every forward pass, and what else is moved.
  function drawnTensors(trace) {
    const moved = new Set(trace.events.map((e) => e.tensor).filter((name) => name));
    return ["q", "k", "v", "o", ...["m", "l"].filter((name) => moved.has(name)), "lse"];
  }

  /// Lays out the grid and the strips for the width that is there, and keeps what changes.
  function layOut() {
    const { seq_q: nq, seq_k: nk } = trace.shape, picture = $("grid");
    const width = Math.max(240, Math.floor($("canvas").clientWidth));
    const strip = 26, thin = 18, gap = 9, names = 20, left = 20, top = 20, right = drawnTensors(trace).slice(3);
    const rightWidth = right.reduce((sum, name) => sum + gap + (name === "o" ? strip : thin), 0);
    const across = width - left - strip - gap - rightWidth - 2;
    const cell = Math.min(across / Math.max(nk, 1), 400 / Math.max(nq, 1), 36);
    const gridWidth = Math.max(cell * nk, 24), gridHeight = Math.max(cell * nq, 24);
    const x0 = Math.max(left + strip + gap, (width - gridWidth - rightWidth + left + strip + gap) / 2), y0 = top + strip + names;
    const height = y0 + gridHeight + gap + strip + 4;
    picture.replaceChildren();
    picture.setAttribute("viewBox", "0 0 " + width + " " + height);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
    const label = (text, x, y, className) => { svg("text", { x, y, class: className || "tp-label" }, picture).textContent = text; };
    const rowTiles = cut(nq, trace.tiles.br), columnTiles = cut(nk, trace.tiles.bc);
    drawing = { tiles: new Map(), strips: new Map(), counts: new Map(), cell, x0, y0, gridWidth, event: null, row: null };

    // Tiles, with what the mask hides
    svg("rect", { x: x0, y: y0, width: gridWidth, height: gridHeight, class: "tp-ground" }, picture);
    const inset = cell >= 6 ? 1 : 0.25;
    rowTiles.forEach((rows, i) => columnTiles.forEach((keys, j) => {
      const box = { x: x0 + keys[0] * cell + inset, y: y0 + rows[0] * cell + inset, width: (keys[1] - keys[0]) * cell - 2 * inset, height: (rows[1] - rows[0]) * cell - 2 * inset };
      const tile = svg("rect", { ...box, rx: cell >= 6 ? 2 : 0, class: "tp-tile" }, picture);
      drawing.tiles.set(i + " " + j, { tile, box });
    }));
    if (cell >= 9) {
      let lines = "";
      for (let i = 1; i < nq; ++i) if (i % trace.tiles.br) lines += "M" + x0 + " " + (y0 + i * cell) + "h" + cell * nk;
      for (let j = 1; j < nk; ++j) if (j % trace.tiles.bc) lines += "M" + (x0 + j * cell) + " " + y0 + "v" + cell * nq;
      svg("path", { d: lines, class: "tp-cells" }, picture);
    }
    if (trace.causal) {
      let masked = "", edge = "", before = nk;
      for (let i = 0; i < nq; ++i) {
        const first = Math.min(nk, Math.max(0, i + trace.diagonal + 1)), x = x0 + first * cell, y = y0 + i * cell;
        if (first < nk) masked += "M" + x + " " + y + "H" + (x0 + nk * cell) + "v" + cell + "H" + x + "z";
        edge += (i === 0 ? "M" + x + " " + y : first === before ? "" : "H" + x) + "v" + cell;
        before = first;
      }
      svg("path", { d: masked, class: "tp-masked" }, picture);
      svg("path", { d: masked, fill: "url(#player-hatch)" }, picture);
      svg("path", { d: edge, class: "tp-edge" }, picture);
    }
    for (const parts of drawing.tiles.values()) parts.cross = svg("path", { d: crossIn(parts.box), class: "tp-cross" }, picture);

    // Strips: a tensor, its row tiles, and how often each was moved
    const addStrip = (name, ranges, boxOf, labelX, labelY) => {
      label(symbols[name], labelX, labelY);
      for (const rows of ranges) {
        const box = boxOf(rows);
        const rect = svg("rect", { ...box, rx: 2, class: "tp-strip tp-of-" + name }, picture);
        drawing.strips.set(name + " " + rows[0], { rect, rows });
        if (box.height < 11 || box.width < 11) continue;
        const count = svg("text", { x: box.x + box.width / 2, y: box.y + box.height / 2, class: "tp-count" }, picture);
        drawing.counts.set(name + " " + rows[0], count);
      }
    };
    const sideways = (y) => (keys) => ({ x: x0 + keys[0] * cell + inset, y, width: Math.max((keys[1] - keys[0]) * cell - 2 * inset, 0.5), height: strip });
    const upright = (x, w) => (rows) => ({ x, y: y0 + rows[0] * cell + inset, width: w, height: Math.max((rows[1] - rows[0]) * cell - 2 * inset, 0.5) });
    const xq = x0 - gap - strip, yv = y0 + gridHeight + gap;
    addStrip("q", rowTiles, upright(xq, strip), xq + strip / 2, y0 - 6);
    addStrip("k", columnTiles, sideways(top), x0 - gap - 5, top + strip / 2 + 4);
    addStrip("v", columnTiles, sideways(yv), x0 - gap - 5, yv + strip / 2 + 4);
    let x = x0 + gridWidth;
    for (const name of right) {
      const w = name === "o" ? strip : thin;
      addStrip(name, rowTiles, upright(x + gap, w), x + gap + w / 2, y0 - 6);
      x += gap + w;
    }
    // Numbers of the tiles
    rowTiles.forEach((rows, i) => {
      if ((rows[1] - rows[0]) * cell >= 11) label(i, xq - 9, y0 + ((rows[0] + rows[1]) / 2) * cell + 4, "tp-index");
    });
    columnTiles.forEach((keys, j) => {
      if ((keys[1] - keys[0]) * cell >= 11) label(j, x0 + ((keys[0] + keys[1]) / 2) * cell, top - 6, "tp-index");
    });
    drawing.row = svg("rect", { class: "tp-row" }, picture);
    drawing.event = svg("rect", { class: "tp-moved" }, picture);
    drawing.row.setAttribute("visibility", nq > 0 ? "visible" : "hidden");
    drawing.row.setAttribute("x", xq - 2);
    drawing.row.setAttribute("width", x - xq + 4);
  }

  function crossIn(box) {
    const r = Math.min(box.width, box.height, 14) / 4, x = box.x + box.width / 2, y = box.y + box.height / 2;
    return "M" + (x - r) + " " + (y - r) + "l" + 2 * r + " " + 2 * r + "M" + (x + r) + " " + (y - r) + "l" + -2 * r + " " + 2 * r;
  }

  function showPicture() {
    const event = at > 0 ? trace.events[at - 1] : null;
    for (const [key, { tile, cross }] of drawing.tiles) {
      const kind = state.kinds.get(key), now = state.now && key === state.now.i + " " + state.now.j;
      tile.setAttribute("class", "tp-tile" + (kind ? " tp-" + kind : "") + (now ? " tp-now" : ""));
      cross.setAttribute("visibility", kind === "skip" ? "visible" : "hidden");
    }
    const live = new Set();
    for (const tile of state.live.values()) if (tile.rows) live.add(tile.name + " " + tile.rows[0]);
    // O, m and l that were born on chip belong to the rows of the tile that is being worked on
    const rowsNow = rowsAtWork();
    for (const tile of state.live.values()) if (!tile.rows && rowsNow && ["o", "m", "l"].includes(tile.name)) live.add(tile.name + " " + rowsNow[0]);
    for (const [key, { rect, rows }] of drawing.strips) {
      const name = key.split(" ")[0];
      const loaded = state.moves.get("load " + key) || 0, stored = state.moves.get("store " + key) || 0;
      const filled = [...state.moves.keys()].some((move) => move.startsWith("fill " + name + " "));
      rect.setAttribute("class", "tp-strip tp-of-" + name + (loaded + stored || filled ? " tp-touched" : "") + (live.has(key) ? " tp-live" : ""));
      const count = drawing.counts.get(key), times = ["q", "k", "v"].includes(name) ? loaded : stored;
      if (count) count.textContent = times ? times : "", count.setAttribute("class", "tp-count" + (live.has(key) ? " tp-on-live" : ""));
    }
    // What the last event moved
    const moved = event && (reads.includes(event.event) || writes.includes(event.event)) && event.rows[1] > event.rows[0];
    drawing.event.setAttribute("visibility", moved ? "visible" : "hidden");
    if (moved) {
      const boxes = [...drawing.strips].filter(([key, { rows }]) => key.split(" ")[0] === event.tensor && rows[0] >= event.rows[0] && rows[1] <= event.rows[1]).map(([, { rect }]) => rect);
      const value = (rect, name) => Number(rect.getAttribute(name));
      if (boxes.length) {
        const first = boxes[0], last = boxes[boxes.length - 1];
        const box = { x: value(first, "x") - 2, y: value(first, "y") - 2, width: value(last, "x") + value(last, "width") - value(first, "x") + 4, height: value(last, "y") + value(last, "height") - value(first, "y") + 4 };
        for (const [name, number] of Object.entries(box)) drawing.event.setAttribute(name, number);
      }
    }
    const row = chosenRow();
    if (row !== null) {
      drawing.row.setAttribute("y", drawing.y0 + row * drawing.cell);
      drawing.row.setAttribute("height", drawing.cell);
    }
    const grid = Math.ceil(trace.shape.seq_q / trace.tiles.br) + " by " + Math.ceil(trace.shape.seq_k / trace.tiles.bc) + " tiles";
    $("grid").setAttribute("aria-label", grid + ", " + state.kinds.size + " visited or skipped" + (state.now ? "; the last is tile (" + state.now.i + ", " + state.now.j + ")" : ""));
  }

  /// The rows whose O, m and l are on chip: those of Q that are there.
  function rowsAtWork() {
    for (const tile of state.live.values()) if (tile.name === "q" && tile.rows) return tile.rows;
    return null;
  }

  // ---- Beside the picture -------------------------------------------------------------------------------------------------

  const chosenRow = () => ($("row").value === "" ? null : Number($("row").value));

  function showChip() {
    const most = Math.max(trace.totals.peak, 1), bar = $("bar"), list = $("tiles");
    bar.replaceChildren();
    list.replaceChildren();
    for (const tile of state.live.values()) {
      const kind = "tp-of-" + (tile.name === null ? "none" : tile.name);
      const part = html("span", "", bar, "tp-part " + kind);
      part.style.width = (100 * tile.elements) / most + "%";
      const item = html("li", "", list, kind);
      html("span", "", item, "tp-swatch");
      html("span", nameOf(tile) + (tile.rows && tile.rows[1] > tile.rows[0] ? " " + span(tile.rows) : ""), item, "tp-tile-name");
      html("span", grouped(tile.elements), item, "tp-tile-elements");
    }
    if (state.peak > 0) html("span", "", bar, "tp-peak").style.left = "calc(" + (100 * state.peak) / most + "% - 2px)";
    if (state.live.size === 0) html("li", "nothing", list, "tp-empty");
    $("fill").textContent = grouped(state.onChip) + " of " + grouped(trace.totals.peak) + ", the most that this run holds; there is room for " + grouped(trace.capacity) + ".";
  }

  function showRow() {
    const row = chosenRow(), seen = (row !== null && state.values.get(row)) || [], last = seen[seen.length - 1];
    const inRow = (e, of) => e[of][row - e.rows[0]];
    $("m").textContent = last ? shown(inRow(last, "m")) : "\u2013";
    $("l").textContent = last ? shown(inRow(last, "l")) : "\u2013";
    $("o").textContent = last ? inRow(last, "o").map(shown).join("  ") : "\u2013";
    const stored = row !== null && state.stored.has(row);
    $("stored").textContent = stored ? "Stored: L = " + shown(trace.lse[row]) + ", O = " + trace.o[row].map(shown).join("  ") : row === null ? "There is no query." : "L is not stored yet.";
    const body = $("history");
    while (body.rows.length > seen.length) body.deleteRow(-1);
    for (let n = body.rows.length; n < seen.length; ++n) {
      const line = body.insertRow();
      const keys = [seen[n].j * trace.tiles.bc, Math.min((seen[n].j + 1) * trace.tiles.bc, trace.shape.seq_k)];
      for (const text of [span(keys), shown(inRow(seen[n], "m")), shown(inRow(seen[n], "l")), inRow(seen[n], "o").map(shown).join("  ")]) line.insertCell().textContent = text;
    }
    for (const line of body.rows) line.classList.toggle("tp-last", line === body.rows[body.rows.length - 1]);
    $("history-box").scrollTop = $("history-box").scrollHeight;
  }

  function showTraffic() {
    const body = $("traffic");
    body.replaceChildren();
    for (const [name, { read, written }] of Object.entries(state.traffic)) {
      const line = body.insertRow();
      line.className = "tp-of-" + name;
      const head = html("th", "", line);
      head.scope = "row";
      html("span", "", head, "tp-swatch");
      head.append(symbols[name]);
      html("td", grouped(read), line);
      html("td", grouped(written), line);
    }
  }

  function show() {
    $("reads").textContent = grouped(state.reads);
    $("writes").textContent = grouped(state.writes);
    $("on-chip").textContent = grouped(state.onChip);
    $("peak").textContent = grouped(state.peak);
    $("event").textContent = describe(at);
    $("slider").value = at;
    $("slider").setAttribute("aria-valuetext", "event " + at + " of " + trace.events.length);
    $("position").textContent = at + " of " + trace.events.length;
    // Not `disabled`: the reader's finger stays where it is when the trace ends under it
    for (const name of ["back", "start"]) $(name).setAttribute("aria-disabled", String(at === 0));
    for (const name of ["forward", "end"]) $(name).setAttribute("aria-disabled", String(at === trace.events.length));
    showPicture();
    showChip();
    showRow();
    showTraffic();
  }

  // ---- Going through the events ---------------------------------------------------------------------------------------------

  function goTo(n) {
    const target = Math.min(Math.max(n, 0), trace.events.length);
    if (target < at) state = before(trace), at = 0, $("history").replaceChildren();
    for (; at < target; ++at) apply(state, trace.events[at]);
    show();
  }
  const endsStep = (n) => $("unit").value === "event" || n === 0 || n === trace.events.length || trace.events[n - 1].event === "values" || (trace.events[n - 1].event === "visit" && trace.events[n - 1].kind === "skip");
  function forward() {
    let n = at + 1;
    while (n < trace.events.length && !endsStep(n)) ++n;
    goTo(n);
  }
  function back() {
    let n = at - 1;
    while (n > 0 && !endsStep(n)) --n;
    goTo(n);
  }
  function pause() {
    window.clearInterval(timer);
    timer = 0;
    root.classList.remove("tp-playing");
    $("play").setAttribute("aria-label", "Play");
    $("play").title = "Play";
    $("event").setAttribute("aria-live", "polite");
  }
  function play() {
    window.clearInterval(timer);
    if (at === trace.events.length) goTo(0);
    root.classList.add("tp-playing");
    $("play").setAttribute("aria-label", "Pause");
    $("play").title = "Pause";
    $("event").setAttribute("aria-live", "off"); // nobody wants every event read out while they run
    timer = window.setInterval(() => {
      forward();
      if (at === trace.events.length) pause();
    }, 1000 / Number($("speed").value));
  }

  // ---- Which trace ------------------------------------------------------------------------------------------------------------

  function say(text) {
    $("message").textContent = text;
    $("message").hidden = text === "";
  }

  function open(next) {
    pause();
    trace = next, at = 0, state = before(trace);
    $("body").hidden = false;
    $("title").textContent = titleOf(trace);
    $("slider").max = trace.events.length;
    $("o-name").textContent = trace.o_is_normalised ? "O, normalised" : "O, not normalised";
    $("legend-masked").hidden = !trace.causal;
    $("legend-skipped").hidden = !trace.events.some((e) => e.kind === "skip");
    $("history").replaceChildren();
    const row = $("row"), kept = Number(row.value) || 0;
    row.replaceChildren();
    for (let i = 0; i < trace.shape.seq_q; ++i) html("option", i, row).value = i;
    row.disabled = trace.shape.seq_q === 0;
    if (trace.shape.seq_q > 0) row.value = Math.min(kept, trace.shape.seq_q - 1);
    layOut();
    show();
  }

  /// Takes what should be a trace; says what is wrong with it and keeps the old one if it is none.
  function take(x, from) {
    const fault = faultOf(x);
    if (fault) {
      say(from + " is not a trace of tiles: " + fault + ".");
      return false;
    }
    say("");
    open(x);
    return true;
  }

  function pick(name) {
    pause();
    const known = window.flashstepsTraces || {};
    if (Object.prototype.hasOwnProperty.call(known, name)) return void take(known[name], name);
    const script = document.createElement("script");
    script.src = tracesFolder + encodeURIComponent(name) + ".js";
    script.onload = () => {
      if ($("trace").value !== name) return; // another was picked meanwhile
      const loaded = window.flashstepsTraces || {};
      if (Object.prototype.hasOwnProperty.call(loaded, name)) take(loaded[name], name);
      else say("The trace " + name + " is not in its file.");
    };
    script.onerror = () => {
      script.remove();
      if ($("trace").value === name) say("The trace " + name + " could not be loaded from " + script.src + ".");
    };
    document.head.append(script);
  }

  function openFile(file) {
    if (file.size > largestFile) return say(file.name + " is larger than 64 MB; the programs write no such trace.");
    const reader = new FileReader();
    reader.onerror = () => say(file.name + " could not be read.");
    reader.onload = () => {
      let parsed;
      try {
        parsed = JSON.parse(reader.result);
      } catch (error) {
        return say(file.name + " is not JSON: " + error.message + ".");
      }
      if (!take(parsed, file.name)) return;
      const select = $("trace");
      let own = select.querySelector("option[data-own]");
      if (!own) own = html("option", "", null), own.dataset.own = "", own.value = "", select.prepend(own);
      own.textContent = file.name;
      own.value = "";
      select.value = "";
      ownTrace = parsed;
    };
    reader.readAsText(file);
  }
  let ownTrace = null;

  function fillSelect() {
    const select = $("trace"), groups = new Map();
    for (const { name, title, group } of window.flashstepsTraceIndex || []) {
      if (!groups.has(group)) {
        const box = document.createElement("optgroup");
        box.label = group;
        groups.set(group, box);
        select.append(box);
      }
      html("option", title, groups.get(group)).value = name;
    }
    return select.options.length;
  }

  // ---- Controls -----------------------------------------------------------------------------------------------------------------

  $("play").addEventListener("click", () => (timer ? pause() : play()));
  $("forward").addEventListener("click", () => { pause(); forward(); });
  $("back").addEventListener("click", () => { pause(); back(); });
  $("start").addEventListener("click", () => { pause(); goTo(0); });
  $("end").addEventListener("click", () => { pause(); goTo(trace.events.length); });
  $("slider").addEventListener("input", () => { pause(); goTo(Number($("slider").value)); });
  $("speed").addEventListener("change", () => { if (timer) play(); });
  $("row").addEventListener("change", () => { $("history").replaceChildren(); show(); });
  $("trace").addEventListener("change", () => {
    if ($("trace").value === "" && ownTrace) take(ownTrace, "This file");
    else pick($("trace").value);
  });
  $("file").addEventListener("change", () => {
    if ($("file").files.length) openFile($("file").files[0]);
    $("file").value = ""; // so that the same file can be opened again
  });
  root.addEventListener("keydown", (event) => {
    if (!trace || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input, .tp-scroll")) return;
    const actions = { ArrowRight: forward, ArrowLeft: back, Home: () => goTo(0), End: () => goTo(trace.events.length) };
    if (!Object.prototype.hasOwnProperty.call(actions, event.key)) return;
    event.preventDefault();
    pause();
    actions[event.key]();
  });
  new ResizeObserver(() => {
    if (!trace || Number($("grid").getAttribute("width")) === Math.max(240, Math.floor($("canvas").clientWidth))) return;
    layOut();
    showPicture();
  }).observe($("canvas"));

  $("body").hidden = true;
  if (fillSelect()) pick($("trace").value);
  else say("There are no traces beside this page; open a file that a program wrote with --trace-tiles.");
})();
