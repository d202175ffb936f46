/* The optimizers of the chapter on four surfaces. Each is written as its box in the chapter; nothing
   is recorded, so that start, learning rates and the rotation of the valley are the reader's. */
(function () {
  "use strict";
  const { number, el, swatch } = Explore;
  const STEPS = 300;
  const FAR = 50; // beyond this coordinate a path ends

  // --- surfaces: value, gradient, Hessian as [xx, xy, yy] ---

  const B = 0.05;
  const C = [1.5, 2.25, 2.625];
  const beale = ([x, y]) => C.map((c, i) => c - x * (1 - y ** (i + 1)));
  const SURFACES = {
    valley: {
      label: "Long valley", where: "in the long valley", start: [0.6, 1], minimum: [0, 0], window: [-1.95, 1.95, -1.5, 1.5], lr: 0.3, steps: 60,
      value: ([x, y]) => 0.5 * (x * x + B * y * y), gradient: ([x, y]) => [x, B * y], hessian: () => [1, 0, B],
    },
    saddle: {
      label: "Saddle", where: "near the saddle", start: [1, 0.02], saddle: [0, 0], window: [-1.56, 1.56, -1.2, 1.2], lr: 0.1, steps: 60,
      value: ([x, y]) => 0.5 * (x * x - y * y), gradient: ([x, y]) => [x, -y], hessian: () => [1, 0, -1],
    },
    beale: {
      label: "Beale", where: "on Beale’s function", start: [1, 1.5], minimum: [3, 0.5], window: [-0.5, 4, -1.5, 2.2], lr: 0.01,
      value: (p) => beale(p).reduce((sum, r) => sum + r * r, 0),
      gradient: ([x, y]) => beale([x, y]).reduce(([a, b], r, i) => [a + 2 * r * (y ** (i + 1) - 1), b + 2 * r * (i + 1) * x * y ** i], [0, 0]),
      hessian: ([x, y]) => {
        const r = beale([x, y]);
        const h = [0, 0, 2 * x * (2 * r[1] + 6 * y * r[2])];
        r.forEach((one, i) => {
          const [u, v] = [y ** (i + 1) - 1, (i + 1) * x * y ** i];
          h[0] += 2 * u * u;
          h[1] += 2 * (u * v + one * (i + 1) * y ** i);
          h[2] += 2 * v * v;
        });
        return h;
      },
    },
    rosenbrock: {
      label: "Rosenbrock", where: "on Rosenbrock’s function", start: [-1.2, 1], minimum: [1, 1], window: [-1.8, 1.8, -0.6, 1.9], lr: 0.0015,
      value: ([x, y]) => (1 - x) ** 2 + 100 * (y - x * x) ** 2,
      gradient: ([x, y]) => [-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)],
      hessian: ([x, y]) => [2 + 1200 * x * x - 400 * y, -400 * x, 200],
    },
  };

  const lossText = (x) => (x === 0 ? "0" : number(x));
  const exact = (v) => (Math.abs(v) < 1e-15 ? 0 : v); // the cosine of 90°
  const turn = ([x, y], a) => [exact(Math.cos(a)) * x - Math.sin(a) * y, Math.sin(a) * x + exact(Math.cos(a)) * y];

  /** The surface, rotated about the origin by an angle in degrees. */
  function rotated(surface, degrees) {
    const a = (degrees * Math.PI) / 180;
    if (!degrees) return surface;
    const [c, s] = [exact(Math.cos(a)), Math.sin(a)];
    return {
      ...surface,
      value: (p) => surface.value(turn(p, -a)),
      gradient: (p) => turn(surface.gradient(turn(p, -a)), a),
      hessian: (p) => {
        const [xx, xy, yy] = surface.hessian(turn(p, -a));
        return [c * c * xx - 2 * c * s * xy + s * s * yy, c * s * (xx - yy) + (c * c - s * s) * xy, s * s * xx + 2 * c * s * xy + c * c * yy];
      },
    };
  }

  // --- methods: (θ, memory, learning rate, surface, number of the step) → θ; memories begin at zero ---

  const each = (f, ...vectors) => [0, 1].map((i) => f(...vectors.map((v) => v[i])));
  const ahead = (p, m) => each((a, v) => a + 0.9 * v, p, m.v);
  const squares = (m, g, rho) => { m.r = each((r, b) => rho * r + (1 - rho) * b * b, m.r, g); };
  const push = (p, m, eta, g) => { m.v = each((v, b) => 0.9 * v - eta * b, m.v, g); return each((a, v) => a + v, p, m.v); };
  const METHODS = {
    "SGD": (p, m, eta, f) => each((a, g) => a - eta * g, p, f.gradient(p)),
    "Momentum": (p, m, eta, f) => push(p, m, eta, f.gradient(p)),
    "Nesterov": (p, m, eta, f) => push(p, m, eta, f.gradient(ahead(p, m))),
    "AdaGrad": (p, m, eta, f) => {
      const g = f.gradient(p);
      m.r = each((r, b) => r + b * b, m.r, g);
      return each((a, b, r) => a - (eta / (1e-7 + Math.sqrt(r))) * b, p, g, m.r);
    },
    "RMSProp": (p, m, eta, f) => {
      const g = f.gradient(p);
      squares(m, g, 0.9);
      return each((a, b, r) => a - (eta / Math.sqrt(1e-6 + r)) * b, p, g, m.r);
    },
    "RMSProp + Nesterov": (p, m, eta, f) => {
      const g = f.gradient(ahead(p, m));
      squares(m, g, 0.9);
      return push(p, m, eta, each((b, r) => b / Math.sqrt(1e-6 + r), g, m.r));
    },
    "AdaDelta": (p, m, eta, f) => {
      const g = f.gradient(p);
      squares(m, g, 0.9);
      const step = each((b, r, d) => (Math.sqrt(1e-3 + d) / Math.sqrt(1e-3 + r)) * b, g, m.r, m.d);
      m.d = each((d, s) => 0.9 * d + 0.1 * s * s, m.d, step);
      return each((a, s) => a - eta * s, p, step);
    },
    "Adam": (p, m, eta, f, t) => {
      const g = f.gradient(p);
      m.v = each((v, b) => 0.9 * v + 0.1 * b, m.v, g);
      squares(m, g, 0.999);
      return each((a, v, r) => a - (eta * v) / (1 - 0.9 ** t) / (Math.sqrt(r / (1 - 0.999 ** t)) + 1e-8), p, m.v, m.r);
    },
    "Newton": (p, m, eta, f) => {
      const [g, [xx, xy, yy]] = [f.gradient(p), f.hessian(p)];
      const det = xx * yy - xy * xy;
      return [p[0] - (eta * (yy * g[0] - xy * g[1])) / det, p[1] - (eta * (xx * g[1] - xy * g[0])) / det];
    },
  };
  const NAMES = Object.keys(METHODS);
  const FIRST = new Set(["SGD", "Momentum", "Adam"]); // the others come with "More methods"
  const ROTATION_INVARIANT = new Set(["SGD", "Momentum", "Nesterov", "Newton"]);

  const TASKS = {
    valley: { solves: ({ name, loss }, angle, step) => angle === 45 && step <= 60 && name === "Adam" && loss < 1e-4, words: "Task 1 solved: at 45° Adam needs another learning rate." },
    rosenbrock: { solves: ({ name, loss }) => name !== "Newton" && loss < 1e-3, words: "Task 2 solved." },
  };

  /** Rates that suit SGD and its relatives depend on the surface, those of the others do not. */
  const ratesFor = ({ lr }) => [lr, lr / 2, lr / 2, 0.3, 0.02, 0.005, 1, 0.05, 1];

  function descend(name, eta, f, start) {
    const memory = { v: [0, 0], r: [0, 0], d: [0, 0] };
    const path = [start];
    while (path.length <= STEPS && path[path.length - 1].every((c) => Math.abs(c) < FAR)) {
      path.push(METHODS[name](path[path.length - 1], memory, eta, f, path.length));
    }
    return path;
  }

  // --- the figure ---

  Explore.figure("optimizer-race", (fig) => {
    const state = Object.assign(fig.state, { start: SURFACES.valley.start });
    const id = (i) => `lr-${NAMES[i]}`;
    let current = "valley";
    fig.choice({ id: "surface", label: "Surface", value: current, options: Object.entries(SURFACES).map(([key, s]) => [key, s.label]) });
    const rotation = fig.slider({ id: "angle", label: "Rotation of the valley", min: 0, max: 90, step: 5, value: 0, format: (v) => `${number(v, 0)}°` });
    const player = fig.player({ id: "step", max: STEPS, interval: 40 });

    const plot = fig.plot({
      title: "Paths: drag the start, or click", width: 400, height: 310, bare: true,
      x: { min: -1, max: 1 }, y: { min: -1, max: 1 },
      alt: () => `Level curves, and the paths of ${list(shown())} after ${state.step} steps ${SURFACES[state.surface].where}.`,
    });
    const angle = () => (state.surface === "valley" ? state.angle : 0);
    const radians = () => (angle() * Math.PI) / 180;
    plot.handle({
      label: "Start of all methods", pick: true, step: [0.02, 0.02],
      get: () => turn(state.start, radians()),
      set: (x, y) => { state.start = turn([x, y], -radians()); player.stop(); },
      describe: (x, y) => `x ${number(x, 2)}, y ${number(y, 2)}`,
    });

    // one row for each method: whether it is shown, its learning rate, its loss
    const body = el("tbody");
    const rows = NAMES.map((name, i) => {
      const [head, rate, loss] = [el("th", { scope: "row" }), el("td"), el("td", { class: "ex-number" })];
      fig.check({ id: name, label: `${i + 1} ${name}`, value: FIRST.has(name), into: head }).node.lastChild.prepend(swatch(i + 1, "dashed"));
      const slider = fig.slider({ id: id(i), label: `Learning rate of ${name}`, min: 1e-4, max: name === "Newton" ? 2 : 4, value: 1, log: true, compact: true, format: (v) => String(Number(v.toPrecision(2))), into: rate });
      const row = el("tr", {}, head, rate, loss);
      body.append(row);
      return { row, slider: slider.node, loss };
    });
    const head = ["Method", "Learning rate η", "Loss"].map((words) => el("th", { scope: "col" }, words));
    fig.panels.append(el("table", { class: "race-table" }, el("thead", {}, el("tr", {}, ...head)), body));
    const reset = () => {
      const surface = SURFACES[state.surface];
      current = state.surface;
      fig.assign({ start: surface.start, angle: 0, step: surface.steps || STEPS, ...Object.fromEntries(ratesFor(surface).map((lr, i) => [id(i), lr])) });
    };
    reset();
    fig.check({ id: "more", label: "More methods" });
    fig.button("Back to the beginning", () => reset());

    const shown = () => NAMES.filter((name) => state[name] && (state.more || FIRST.has(name)));
    const kept = {};
    /** What a function returns, kept until its key changes. */
    function keep(what, key, compute) {
      if (!kept[what] || kept[what].key !== key) kept[what] = { key, value: compute() };
      return kept[what].value;
    }
    const rates = () => NAMES.map((_, i) => state[id(i)]);
    function paths(degrees) {
      const f = rotated(SURFACES[state.surface], degrees);
      const start = turn(state.start, (degrees * Math.PI) / 180);
      return keep(degrees ? "rotated" : "straight", JSON.stringify([state.surface, degrees, start, rates()]), () => NAMES.map((name, i) => descend(name, rates()[i], f, start)));
    }

    function levels(surface) {
      const [left, right, bottom, top] = surface.window;
      const f = rotated(surface, angle());
      const grid = (low, high) => Array.from({ length: 31 }, (_, i) => low + ((high - low) * i) / 30);
      const z = grid(left, right).flatMap((x) => grid(bottom, top).map((y) => f.value([x, y])));
      const [low, high] = [Math.min(...z), Math.max(...z)];
      const heights = Array.from({ length: 12 }, (_, k) => low + (high - low) * (0.02 + (0.98 * k) / 11) ** 2.5);
      return plot.contours((x, y) => f.value([x, y]), heights, 48);
    }

    /** What became of a path at this step: a loss, or the step at which it left. */
    function outcome(path, f) {
      const at = path[Math.min(state.step, path.length - 1)];
      const gone = !at.every((c) => Math.abs(c) < FAR);
      const still = state.surface === "saddle" && Math.hypot(...at) < 1e-3;
      return { at, gone, still, when: path.length - 1, loss: f.value(at) };
    }
    /** The point of a path at a fraction of its length inside the window: there its number stands. */
    function along(path, fraction, [left, right, bottom, top]) {
      const inside = path.filter(([x, y]) => left <= x && x <= right && bottom <= y && y <= top);
      const lengths = inside.map((p, k) => (k ? Math.hypot(p[0] - inside[k - 1][0], p[1] - inside[k - 1][1]) : 0));
      const wanted = fraction * lengths.reduce((a, b) => a + b, 0);
      let sum = 0;
      return inside[lengths.findIndex((d) => (sum += d) >= wanted)] || path[0];
    }
    const list = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`);

    function describe(results) {
      const seen = results.filter(({ name }) => shown().includes(name));
      if (!seen.length) return "No method is shown. Tick one in the table.";
      const gone = seen.filter((r) => r.gone);
      const left = seen.filter((r) => !r.gone);
      const words = [`After ${state.step} step${state.step === 1 ? "" : "s"} ${SURFACES[state.surface].where}`];
      if (state.surface === "saddle") {
        const still = left.filter((r) => r.still);
        const away = seen.filter((r) => !r.still && (r.gone || r.loss < -0.5));
        words[0] += still.length ? ` ${list(still.map((r) => r.name))} ${still.length > 1 ? "are" : "is"} at the saddle point.` : " no method is at the saddle point.";
        if (away.length) words.push(`${list(away.map((r) => r.name))} ${away.length > 1 ? "have" : "has"} escaped along the descending direction.`);
        return words.join(" ");
      }
      if (left.length) {
        const first = left.reduce((a, b) => (b.loss < a.loss ? b : a));
        words[0] += ` ${first.name} has the lowest loss, ${lossText(first.loss)}.`;
      }
      else words[0] += " no method is left.";
      if (gone.length) words.push(`${list(gone.map((r) => `${r.name} (step ${r.when})`))} diverged${gone.some(({ name }) => name === "Newton") ? "" : ": the learning rate is too large for this start"}.`);
      if (angle()) {
        const f = SURFACES.valley;
        const before = paths(0).map((path) => outcome(path, f).loss);
        const changed = seen.filter((r) => Math.abs(r.loss - before[NAMES.indexOf(r.name)]) > 1e-6 * (Math.abs(r.loss) + 1e-12));
        const same = seen.filter((r) => ROTATION_INVARIANT.has(r.name));
        if (same.length) words.push(`The rotation leaves the loss of ${list(same.map((r) => r.name))} as it was.`);
        const adaptive = seen.filter((r) => !ROTATION_INVARIANT.has(r.name));
        const most = changed.filter((r) => !ROTATION_INVARIANT.has(r.name)).map((r) => ({ ...r, factor: r.loss / before[NAMES.indexOf(r.name)] })).sort((a, b) => b.factor - a.factor)[0];
        if (most) words.push(`Methods with a rate for each coordinate change: ${most.name} has the loss ${number(most.loss)}, and had ${number(before[NAMES.indexOf(most.name)])} without it.`);
        else if (adaptive.length && angle() === 90) words.push(`At 90° the valley lies along the other axis, so the methods with a rate for each coordinate (${list(adaptive.map((r) => r.name))}) have the same loss as without the rotation, too.`);
      }
      return words.join(" ");
    }

    fig.draw(() => {
      if (state.surface !== current) reset();
      const surface = SURFACES[state.surface];
      const f = rotated(surface, angle());
      rotation.node.hidden = state.surface !== "valley";
      const [left, right, bottom, top] = surface.window;
      plot.axes({ min: left, max: right }, { min: bottom, max: top });
      plot.data.append(keep("levels", `${state.surface} ${angle()}`, () => levels(surface)));
      const star = surface.minimum || surface.saddle;
      plot.text(star, surface.minimum ? "★" : "✕", { anchor: "middle", dy: 4 });
      const all = paths(angle());
      const results = all.map((path, i) => ({ name: NAMES[i], ...outcome(path, f) }));
      const names = shown();
      results.forEach((result, i) => {
        const { name, at, gone, when, still } = result;
        rows[i].row.hidden = !state.more && !FIRST.has(name);
        rows[i].slider.hidden = !state[name];
        rows[i].loss.textContent = !gone ? (still ? "at the saddle" : lossText(result.loss)) : `${state.surface === "saddle" ? "escaped" : "diverged"}, step ${when}`;
        if (!names.includes(name)) return;
        plot.curve(all[i].slice(0, state.step + 1), { series: i + 1, dash: true, width: 1.8 });
        plot.dots([at], { series: i + 1, radius: 4.5 });
        const beside = along(all[i].slice(0, state.step + 1), (names.indexOf(name) + 1) / (names.length + 1), surface.window);
        plot.text(beside, String(i + 1), { series: i + 1, anchor: "middle", dy: -5, bold: true });
      });
      const task = TASKS[state.surface];
      fig.say(describe(results), task && results.some((r) => names.includes(r.name) && !r.gone && task.solves(r, angle(), state.step)) && task.words);
    });

    fig.expose({
      names: () => NAMES,
      paths: () => paths(angle()),
      path: (name) => paths(angle())[NAMES.indexOf(name)],
      losses: () => paths(angle()).map((path) => outcome(path, rotated(SURFACES[state.surface], angle())).loss),
      outcomes: () => rows.map(({ loss }) => loss.textContent),
    });
  });
})();
