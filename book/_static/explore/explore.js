/* What the figures to explore share: controls, plots with axes and draggable points, a player, and
   a sentence that says what is seen. A figure is a function that is registered under a name,
   Explore.figure("name", (fig) => …), and built wherever the page has data-explore="name".
   A classic script without dependencies, so that the page also works from a file. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["6 3", "none", "7 3", "2 3", "9 3 2 3", "5 2", "12 3", "3 2 1 2", "1 4", "10 2 2 2 2 2"]; // by series
  const QUIET = 250; // milliseconds without a change until the sentence is said
  const makers = {};
  const figures = {};

  // --- numbers and words ---

  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
  const raised = (k) => String(k).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(c)]);
  const power = (k) => (k === 0 ? "1" : k === 1 ? "10" : `10${raised(k)}`);

  /** A number for readers: a true minus sign, and powers of ten where digits would mislead. */
  function number(x, digits = 3) {
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "not a number" : x > 0 ? "∞" : "−∞";
    const size = Math.abs(x);
    if (size !== 0 && (size < 0.5 * 10 ** -digits || size >= 1e5)) {
      const [head, exponent] = x.toExponential(1).split("e");
      return `${head} · 10${raised(Number(exponent))}`.replace("-", "−");
    }
    const text = x.toFixed(digits);
    return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
  }

  /** About n round numbers between two others. */
  function ticksBetween(low, high, n = 5) {
    const raw = (high - low) / n;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = unit * [1, 2, 5, 10].find((k) => k * unit >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  /** Uniform numbers in [0, 1), the same for the same seed (mulberry32); .normal() is Gaussian. */
  function random(seed) {
    let a = seed >>> 0;
    const next = () => {
      a = (a + 0x6d2b79f5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    next.normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
    return next;
  }

  const times = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

  /** The iterates of gradient descent, the start first; the last one may be far away. */
  function descend(gradient, start, lr, steps, { momentum = 0, far = 1e3 } = {}) {
    const path = [start];
    let velocity = start.map(() => 0);
    while (path.length <= steps && path.at(-1).every((x) => Math.abs(x) < far)) {
      const g = gradient(path.at(-1));
      velocity = velocity.map((v, i) => momentum * v - lr * g[i]);
      path.push(path.at(-1).map((x, i) => x + velocity[i]));
    }
    return path;
  }

  // --- elements ---

  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function svg(tag, attributes, parent, text) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  // --- plots ---

  /** One axis: from data to pixels and back. */
  function scale(axis, low, high) {
    const { min, max, log } = axis;
    const f = log ? Math.log10 : (v) => v;
    const back = log ? (u) => 10 ** u : (u) => u;
    const [a, b] = [f(min), f(max)];
    const to = (v) => low + ((f(v) - a) / (b - a)) * (high - low);
    to.invert = (pixel) => back(a + ((pixel - low) / (high - low)) * (b - a));
    return to;
  }

  function ticksOf(axis) {
    if (axis.ticks) return axis.ticks.map((t) => (Array.isArray(t) ? t : [t, axis.log ? logText(t) : String(t).replace("-", "−")]));
    if (!axis.log) return ticksBetween(axis.min, axis.max).map((t) => [t, String(t).replace("-", "−")]);
    const [a, b] = [Math.ceil(Math.log10(axis.min) - 1e-9), Math.floor(Math.log10(axis.max) + 1e-9)];
    const every = Math.max(1, Math.ceil((b - a) / 6));
    const found = [];
    for (let k = a; k <= b; k += every) found.push([10 ** k, power(k)]);
    return found;
  }
  const logText = (v) => (Math.abs(Math.log10(v) % 1) < 1e-9 ? power(Math.round(Math.log10(v))) : String(v));

  let plots = 0;

  class Plot {
    constructor(fig, options) {
      const { title, x, y, width = 340, height = 230, alt = "", bare = false, into } = options;
      Object.assign(this, { fig, alt, bare, width, height, handles: [] });
      const margin = { left: 44, right: 10, top: y.label ? 24 : 12, bottom: 40, ...(bare ? { left: 4, right: 4, top: 4, bottom: 4 } : {}), ...options.margin };
      this.box = { left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
      this.svg = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "ex-plot" });
      const clip = `ex-clip-${(plots += 1)}`;
      const area = { x: this.box.left, y: this.box.top, width: this.box.right - this.box.left, height: this.box.bottom - this.box.top };
      svg("rect", area, svg("clipPath", { id: clip }, this.svg));
      this.art = svg("g", { "aria-hidden": "true" }, this.svg);
      this.frame = svg("g", {}, this.art);
      this.data = svg("g", { "clip-path": `url(#${clip})` }, this.art);
      this.front = svg("g", {}, this.art);
      this.axes(x, y);
      this.node = el("div", { class: "ex-panel" });
      if (title) this.node.append(el("p", { class: "ex-title" }, title));
      this.node.append(this.svg);
      (into || fig.panels).append(this.node);
    }

    /** Set the ranges, and draw the axes again. */
    axes(x, y) {
      const { box, frame, bare } = this;
      Object.assign(this, { xAxis: x, yAxis: y, x: scale(x, box.left, box.right), y: scale(y, box.bottom, box.top) });
      frame.replaceChildren();
      if (bare) return;
      svg("path", { class: "ex-axis", d: `M${box.left},${box.top}V${box.bottom}H${box.right}` }, frame);
      for (const [v, text] of ticksOf(x)) {
        svg("line", { class: "ex-axis", x1: this.x(v), x2: this.x(v), y1: box.bottom, y2: box.bottom + 4 }, frame);
        svg("text", { x: this.x(v), y: box.bottom + 17, "text-anchor": "middle" }, frame, text);
      }
      for (const [v, text] of ticksOf(y)) {
        svg("line", { class: "ex-axis", x1: box.left - 4, x2: box.left, y1: this.y(v), y2: this.y(v) }, frame);
        svg("text", { x: box.left - 7, y: this.y(v) + 4, "text-anchor": "end" }, frame, text);
      }
      if (x.label) svg("text", { x: box.right, y: box.bottom + 34, "text-anchor": "end" }, frame, x.label);
      if (y.label) svg("text", { x: box.left - 36, y: box.top - 12 }, frame, y.label);
    }

    clear() {
      this.data.replaceChildren();
      this.front.replaceChildren();
    }

    pixel([a, b]) {
      return [clamp(this.x(a), -5e3, 5e3), clamp(this.y(b), -5e3, 5e3)];
    }

    path(points, closed = false) {
      let pen = "M", d = "";
      for (const point of points) {
        const [a, b] = this.pixel(point);
        if (Number.isFinite(a) && Number.isFinite(b)) {
          d += `${pen}${a.toFixed(1)},${b.toFixed(1)}`;
          pen = "L";
        } else pen = "M";
      }
      return closed ? `${d}Z` : d;
    }

    /** A line through points, or of a function of x. Options: series, dash, width, faint, class. */
    curve(points, options = {}) {
      const { series = 0, dash, width, faint } = options;
      const list = typeof points === "function" ? this.samples(points) : points;
      const style = { d: this.path(list), class: `ex-line ex-s${series} ${faint ? "ex-faint" : ""} ${options.class || ""}` };
      if (dash) style["stroke-dasharray"] = dash === true ? DASHES[series] : dash;
      if (width) style.style = `stroke-width:${width}px`;
      return svg("path", style, this.data);
    }

    samples(f, n = 240) {
      const { box } = this;
      return Array.from({ length: n + 1 }, (_, i) => this.x.invert(box.left + (i / n) * (box.right - box.left))).map((v) => [v, f(v)]);
    }

    /** A filled region. */
    area(points, options = {}) {
      return svg("path", { d: this.path(points, true), class: `ex-area ex-s${options.series || 0} ${options.class || ""}` }, this.data);
    }

    /** Marks at points: "circle", "square", "diamond", "ring", "cross". */
    dots(points, { series = 0, radius = 3, shape = "circle" } = {}) {
      for (const point of points) {
        const [a, b] = this.pixel(point);
        if (Number.isFinite(a) && Number.isFinite(b)) mark(this.data, a, b, radius, shape, series);
      }
    }

    text(at, words, { series = 0, anchor = "start", dx = 0, dy = 0, bold = false } = {}) {
      const [a, b] = this.pixel(at);
      return svg("text", { x: a + dx, y: b + dy, "text-anchor": anchor, class: `ex-word ex-s${series}${bold ? " ex-bold" : ""}` }, this.front, words);
    }

    guide(x, y) {
      const { box } = this;
      if (x !== null && x !== undefined) svg("line", { class: "ex-guide", x1: this.x(x), x2: this.x(x), y1: box.top, y2: box.bottom }, this.data);
      if (y !== null && y !== undefined) svg("line", { class: "ex-guide", x1: box.left, x2: box.right, y1: this.y(y), y2: this.y(y) }, this.data);
    }

    /** Level curves of f(x, y) at these heights, by marching squares on n × n cells. */
    contours(f, heights, n = 60) {
      const { box } = this;
      const xs = Array.from({ length: n + 1 }, (_, i) => box.left + (i / n) * (box.right - box.left));
      const ys = Array.from({ length: n + 1 }, (_, i) => box.top + (i / n) * (box.bottom - box.top));
      const [us, vs] = [xs.map(this.x.invert), ys.map(this.y.invert)];
      const z = vs.map((v) => us.map((u) => f(u, v)));
      let d = "";
      for (let i = 0; i < n; i += 1) {
        for (let j = 0; j < n; j += 1) {
          const values = [z[i][j], z[i][j + 1], z[i + 1][j + 1], z[i + 1][j]];
          const [low, high] = [Math.min(...values), Math.max(...values)];
          for (const h of heights) {
            if (!(low < h && h <= high)) continue; // as nearly everywhere
            const corners = [[j, i], [j + 1, i], [j + 1, i + 1], [j, i + 1]];
            const cuts = [];
            values.forEach((value, k) => {
              const next = (k + 1) % 4, [a, b] = corners[k], [c, e] = corners[next];
              if ((value < h) !== (values[next] < h)) {
                const t = (value - h) / (value - values[next]);
                cuts.push(`${(xs[a] + t * (xs[c] - xs[a])).toFixed(1)},${(ys[b] + t * (ys[e] - ys[b])).toFixed(1)}`);
              }
            });
            for (let k = 0; k + 1 < cuts.length; k += 2) d += `M${cuts[k]}L${cuts[k + 1]}`;
          }
        }
      }
      return svg("path", { d, class: "ex-level" }, this.data);
    }

    /** A map of f(x, y) in [0, 1], from transparent to the color of the series. */
    heat(f, { series = 1, n = 64 } = {}) {
      const { box } = this;
      const [r, g, b] = color(this.node, series);
      const canvas = Object.assign(document.createElement("canvas"), { width: n, height: n });
      const context = canvas.getContext("2d");
      const image = context.createImageData(n, n);
      for (let i = 0; i < n * n; i += 1) {
        const [u, v] = [((i % n) + 0.5) / n, (Math.floor(i / n) + 0.5) / n];
        const value = f(this.x.invert(box.left + u * (box.right - box.left)), this.y.invert(box.top + v * (box.bottom - box.top)));
        image.data.set([r, g, b, 255 * clamp(Number.isFinite(value) ? value : 0, 0, 1)], 4 * i);
      }
      context.putImageData(image, 0, 0);
      const place = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, preserveAspectRatio: "none" };
      return svg("image", { href: canvas.toDataURL(), ...place }, this.data);
    }

    /** A point that the reader moves, with the mouse, a finger or the arrow keys. See Handle. */
    handle(options) {
      const handle = new Handle(this, options);
      this.handles.push(handle);
      this.svg.setAttribute("role", "group");
      return handle;
    }

    finish() {
      this.svg.setAttribute("aria-label", typeof this.alt === "function" ? this.alt() : this.alt);
      for (const handle of this.handles) handle.place();
    }
  }

  function mark(parent, x, y, r, shape, series) {
    const kind = `ex-dot ex-s${series}`;
    if (shape === "circle") return svg("circle", { class: kind, cx: x.toFixed(1), cy: y.toFixed(1), r }, parent);
    if (shape === "ring") return svg("circle", { class: `ex-line ex-s${series}`, cx: x.toFixed(1), cy: y.toFixed(1), r }, parent);
    const d = { square: `M${-r},${-r}H${r}V${r}H${-r}Z`, diamond: `M0,${-r * 1.3}L${r * 1.3},0L0,${r * 1.3}L${-r * 1.3},0Z`, cross: `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}` }[shape];
    return svg("path", { class: shape === "cross" ? `ex-line ex-s${series}` : kind, d, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }, parent);
  }

  /** A small picture of a series, for legends and tables: a shape, "line" or "dashed". */
  function swatch(series, shape = "line") {
    const picture = svg("svg", { viewBox: "0 0 26 12", class: "ex-swatch", "aria-hidden": "true" });
    const dash = shape === "dashed" ? { "stroke-dasharray": DASHES[series] || "6 3" } : {};
    if (shape === "line" || shape === "dashed") svg("path", { d: "M0,6H26", class: `ex-line ex-s${series}`, ...dash }, picture);
    else mark(picture, 13, 6, 4, shape, series);
    return picture;
  }

  function color(node, series) {
    const probe = el("span", { class: `ex-s${series}`, style: "color: var(--s)" });
    node.append(probe);
    const found = (getComputedStyle(probe).color.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
    probe.remove();
    return found;
  }

  /** Options: label, get() → [x, y], set(x, y), move "xy", "x" or "y", step [dx, dy] (also the grid
      that positions are rounded to; a step on a logarithmic axis is a factor and rounds to three
      digits), describe(x, y) → words, pick: a click on the plot moves the point there. */
  class Handle {
    constructor(plot, options) {
      Object.assign(this, { plot, move: "xy", series: 0, ...options });
      this.node = svg("g", { class: `ex-handle ex-s${this.series}`, tabindex: "0", role: "slider", "aria-label": this.label }, plot.svg);
      if (this.move === "y") this.node.setAttribute("aria-orientation", "vertical");
      svg("circle", { class: "ex-reach", r: 18 }, this.node);
      svg("circle", { class: "ex-ring", r: 12 }, this.node);
      svg("circle", { class: "ex-grip", r: 7 }, this.node);
      this.node.addEventListener("pointerdown", (event) => this.grab(event));
      // touch-action alone does not keep a page from scrolling under a finger on a part of an SVG
      this.node.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
      this.node.addEventListener("keydown", (event) => this.key(event));
      if (this.pick) plot.svg.classList.add("ex-pick");
      if (this.pick) plot.svg.addEventListener("click", (event) => { if (!event.target.closest(".ex-handle")) this.to(...this.at(event)); });
      this.first = this.get();
    }

    /** Data coordinates of a pointer. */
    at(event) {
      const { left, top, width, height } = this.plot.svg.getBoundingClientRect();
      const u = ((event.clientX - left) / width) * this.plot.width;
      const v = ((event.clientY - top) / height) * this.plot.height;
      return [this.plot.x.invert(u), this.plot.y.invert(v)];
    }

    grab(event) {
      const follow = (moved) => this.to(...this.at(moved));
      const release = () => {
        this.node.removeEventListener("pointermove", follow);
        this.node.classList.remove("ex-held");
      };
      event.preventDefault();
      this.node.focus({ preventScroll: true });
      this.node.setPointerCapture(event.pointerId);
      this.node.classList.add("ex-held");
      this.node.addEventListener("pointermove", follow);
      this.node.addEventListener("pointerup", release, { once: true });
      this.node.addEventListener("pointercancel", release, { once: true });
    }

    key(event) {
      const [x, y] = this.get();
      const { xAxis, yAxis } = this.plot;
      const times = event.shiftKey ? 5 : 1;
      const by = (axis, value, sign, i) => {
        const size = this.step && this.step[i];
        if (axis.log) return value * (size || (axis.max / axis.min) ** 0.01) ** (sign * times);
        return value + sign * times * (size || (axis.max - axis.min) / 100);
      };
      const moves = {
        ArrowLeft: () => [by(xAxis, x, -1, 0), y], ArrowRight: () => [by(xAxis, x, 1, 0), y],
        ArrowDown: () => [x, by(yAxis, y, -1, 1)], ArrowUp: () => [x, by(yAxis, y, 1, 1)], Home: () => [...this.first, true],
      };
      if (this.move === "x") Object.assign(moves, { ArrowDown: moves.ArrowLeft, ArrowUp: moves.ArrowRight });
      if (this.move === "y") Object.assign(moves, { ArrowLeft: moves.ArrowDown, ArrowRight: moves.ArrowUp });
      if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.to(...moves[event.key]());
    }

    to(x, y, exact = false) {
      const [a, b] = this.get();
      const fit = (value, axis, i) => {
        if (exact) return value;
        const size = this.step && this.step[i];
        const round = axis.log ? Number(value.toPrecision(3)) : size ? Number((Math.round(value / size) * size).toPrecision(12)) : value;
        return clamp(round, axis.min, axis.max);
      };
      this.set(this.move === "y" ? a : fit(x, this.plot.xAxis, 0), this.move === "x" ? b : fit(y, this.plot.yAxis, 1));
      this.plot.fig.change();
    }

    place() {
      const [x, y] = this.get();
      const { xAxis, yAxis } = this.plot;
      const [axis, now] = this.move === "y" ? [yAxis, y] : [xAxis, x];
      const [u, v] = this.plot.pixel([x, y]);
      this.node.setAttribute("transform", `translate(${u.toFixed(1)} ${v.toFixed(1)})`);
      const words = this.describe ? this.describe(x, y) : `${xAxis.label || "x"} ${number(x, 2)}, ${yAxis.label || "y"} ${number(y, 2)}`;
      const aria = { valuemin: axis.min, valuemax: axis.max, valuenow: Number(now.toPrecision(6)), valuetext: words };
      for (const [name, value] of Object.entries(aria)) this.node.setAttribute(`aria-${name}`, value);
    }
  }

  // --- figures ---

  class Figure {
    constructor(name, root) {
      const part = (kind, tag = "div") => el(tag, { class: `ex-${kind}` });
      Object.assign(this, { name, root, state: {}, shows: {}, hooks: {}, drawers: [], all: [] });
      Object.assign(this, { controls: part("controls"), buttons: part("buttons"), panels: part("panels"), below: part("below") });
      this.words = el("p", { class: "ex-say", "aria-live": "polite" });
      this.text = "";
    }

    /** The name of the task, where a page gives another than the usual one. */
    get task() {
      return this.root.dataset.task;
    }

    /** Keep a value in the state; `show` tells its control about a new one. */
    keep(id, value, show) {
      this.state[id] = value;
      this.shows[id] = show;
    }

    /** Take values over into the state and the controls, without drawing. */
    assign(values) {
      Object.assign(this.state, values);
      for (const id of Object.keys(values)) if (this.shows[id]) this.shows[id](this.state[id]);
    }

    set(values) {
      this.assign(values);
      this.change();
    }

    /** A range with its label and value. `log` makes equal steps equal factors; `compact` shows the
        label to readers of the screen alone. */
    slider({ id, label, min, max, step, value, log = false, compact = false, format = (v) => number(v, 2), into }) {
      const key = `${this.name}-${id}`;
      const shown = el("span", { class: "ex-value", "aria-hidden": "true" }); // the range itself says it
      const range = log ? { min: 0, max: 200, step: 1 } : { min, max, step };
      const input = el("input", { type: "range", id: key, ...range });
      const read = (u) => (log ? Number((min * (max / min) ** (u / 200)).toPrecision(3)) : u);
      const write = (v) => (log ? (200 * Math.log(v / min)) / Math.log(max / min) : v);
      const show = (v) => {
        input.value = write(v);
        shown.textContent = format(v);
        input.setAttribute("aria-valuetext", format(v));
      };
      this.keep(id, value, show);
      show(value);
      input.addEventListener("input", () => {
        this.state[id] = read(Number(input.value));
        show(this.state[id]);
        this.change(id);
      });
      const node = el("div", { class: "ex-control" }, el("div", { class: "ex-named" }, el("label", { for: key, ...(compact ? { class: "ex-hide" } : {}) }, label), shown), input);
      (into || this.controls).append(node);
      return { input, node };
    }

    /** One of a few options, as buttons side by side; options are [value, label]. */
    choice({ id, label, options, value, into }) {
      const inputs = options.map(([v]) => el("input", { type: "radio", name: `${this.name}-${id}`, value: v }));
      const rows = options.map(([, words], i) => el("label", {}, inputs[i], el("span", {}, words)));
      const show = (v) => inputs.forEach((input) => { input.checked = input.value === String(v); });
      this.keep(id, value, show);
      show(value);
      options.forEach(([v], i) => inputs[i].addEventListener("change", () => { this.state[id] = v; this.change(id); }));
      const node = el("fieldset", { class: "ex-choice" }, el("legend", {}, label), el("div", {}, ...rows));
      (into || this.controls).append(node);
      return { inputs, node };
    }

    /** A box to tick. */
    check({ id, label, value = false, into }) {
      const input = el("input", { type: "checkbox" });
      this.keep(id, value, (v) => { input.checked = v; });
      input.checked = value;
      input.addEventListener("change", () => { this.state[id] = input.checked; this.change(id); });
      const node = el("label", { class: "ex-check" }, input, el("span", {}, label));
      (into || this.buttons).append(node);
      return { input, node };
    }

    button(label, action, into) {
      const node = el("button", { type: "button" }, label);
      node.addEventListener("click", () => { action(); this.change(); });
      (into || this.buttons).append(node);
      return node;
    }

    /** A slider of steps, with buttons to play, to pause and to go one step. state[id] is the step. */
    player({ id = "step", label = "Step", max, value = max, interval = 60, format = (v) => String(v) }) {
      const { input } = this.slider({ id, label, min: 0, max, step: 1, value, format });
      let timer, last = max;
      const to = (v) => this.set({ [id]: clamp(v, 0, last) });
      const stop = () => { clearInterval(timer); timer = undefined; play.textContent = "Play"; };
      const toggle = () => {
        if (timer) return stop();
        if (this.state[id] >= last) to(0);
        play.textContent = "Pause";
        timer = setInterval(() => { to(this.state[id] + 1); if (this.state[id] >= last) stop(); }, interval);
      };
      const back = el("button", { type: "button" }, "One step back");
      const play = el("button", { type: "button" }, "Play");
      const on = el("button", { type: "button" }, "One step on");
      play.addEventListener("click", toggle);
      back.addEventListener("click", () => { stop(); to(this.state[id] - 1); });
      on.addEventListener("click", () => { stop(); to(this.state[id] + 1); });
      input.addEventListener("input", stop);
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches; // then steps, but no motion
      play.hidden = still;
      if (!still) input.addEventListener("keydown", (event) => { if (event.key === " ") { event.preventDefault(); toggle(); } });
      this.buttons.append(back, play, on);
      return { input, play, stop, setMax(n) { last = n; input.max = n; } };
    }

    plot(options) {
      const plot = new Plot(this, options);
      this.all.push(plot);
      return plot;
    }

    /** A column of panels, one above the other: pass it as `into`. */
    column() {
      const node = el("div", { class: "ex-column" });
      this.panels.append(node);
      return node;
    }

    /** A list of what the series are: [series, words, shape or "line"]. */
    legend(rows, into) {
      const list = el("ul", { class: "ex-legend" });
      for (const [series, words, shape = "line"] of rows) {
        list.append(el("li", {}, swatch(series, shape), words));
      }
      (into || this.below).append(list);
      return list;
    }

    /** Say what is seen now, after what is reached of the task. Readers of the screen hear it when the changes pause. */
    say(text, reached) {
      this.text = reached ? `✓ ${reached} ${text}` : text;
      this.words.classList.toggle("ex-reached", Boolean(reached));
      clearTimeout(this.speaking);
      if (!this.words.textContent) this.words.textContent = this.text;
      else this.speaking = setTimeout(() => { this.words.textContent = this.text; }, QUIET);
    }

    /** Draw now, and after each change; the function gets the state and the control that changed. */
    draw(drawer) {
      this.drawers.push(drawer);
    }

    change(id) {
      for (const plot of this.all) plot.clear();
      for (const drawer of this.drawers) drawer(this.state, id);
      for (const plot of this.all) plot.finish();
    }

    /** Numbers for tests: Explore.figures[name].path() and the like. */
    expose(hooks) {
      Object.assign(this.hooks, hooks);
    }
  }

  function build(root) {
    const name = root.dataset.explore;
    if (!makers[name] || root.dataset.ready) return;
    const fig = new Figure(name, root);
    root.dataset.ready = "yes";
    const still = [...root.childNodes];
    try {
      makers[name](fig);
      root.classList.add("ex-live");
      root.replaceChildren(fig.controls, fig.buttons, fig.panels, fig.words, fig.below);
      fig.change();
    } catch (error) { // then the still picture comes back
      root.replaceChildren(...still);
      throw error;
    }
    for (const node of [fig.controls, fig.buttons, fig.words, fig.below]) if (!node.hasChildNodes()) node.remove();
    figures[name] = { state: fig.state, set: (values) => fig.set(values), sentence: () => fig.text, ...fig.hooks };
    new MutationObserver(() => fig.change()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  const buildAll = () => document.querySelectorAll("[data-explore]").forEach(build);

  /** Register a figure. */
  function figure(name, maker) {
    makers[name] = maker;
    if (document.readyState !== "loading") buildAll();
  }

  window.Explore = { figure, figures, build: buildAll, number, times, descend, clamp, random, ticksBetween, el, svg, swatch, power };
})();
