/* A cloud of activations with two features, and the Hessian ĤᵀĤ/N of a unit that reads them, with
   Ĥ = [e, H]: as it is, after centering (U) and after scaling too (UD). The cloud has exactly the mean,
   the deviations and the correlation that are chosen, so that these give the 3 × 3 Hessian; the
   level curves are its slice at the right bias, over the two weights. */
(function () {
  "use strict";
  const { number, clamp, el } = Explore;
  const POINTS = 40;
  const START = [1, 0.8]; // of the two weights, relative to the minimum; the bias starts right
  const FIRST = { mean: [3, 2], s1: 1.2, s2: 0.3, r: 0.5 };
  const SYSTEMS = [["As it is", 2, "circle"], ["After U", 1, "square"], ["After UD", 3, "diamond"]];

  // --- the mathematics ---

  /** Points with mean 0, standard deviation 1 and correlation 0, exactly. */
  const white = (() => {
    const draw = Explore.random(11).normal;
    const columns = [0, 1].map(() => Array.from({ length: POINTS }, draw));
    const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0) / POINTS;
    const ones = Array(POINTS).fill(1);
    const [a, b] = columns.map((list) => list.map((v) => v - dot(list, ones)));
    const unit = (list) => list.map((v) => v / Math.sqrt(dot(list, list)));
    return [unit(a), unit(b.map((v, i) => v - (dot(a, b) / dot(a, a)) * a[i]))];
  })();

  /** A point of the cloud from one of the white cloud. */
  const place = ({ mean, s1, s2, r }, [a, b]) => [mean[0] + s1 * a, mean[1] + s2 * (r * a + Math.sqrt(1 - r * r) * b)];

  /** The Hessians as it is, after U and after UD; the bias comes first. */
  function hessians({ mean: [m, n], s1, s2, r }) {
    const c = r * s1 * s2;
    return [
      [[1, m, n], [m, s1 * s1 + m * m, c + m * n], [n, c + m * n, s2 * s2 + n * n]],
      [[1, 0, 0], [0, s1 * s1, c], [0, c, s2 * s2]],
      [[1, 0, 0], [0, 1, r], [0, r, 1]],
    ];
  }

  /** Eigenvalues of a symmetric matrix, ascending, with their vectors, by Jacobi's rotations. */
  function eigen(matrix) {
    const A = matrix.map((row) => [...row]), n = A.length;
    const V = A.map((_, i) => A.map((_, j) => Number(i === j)));
    const turn = (x, y, c, s) => [c * x - s * y, s * x + c * y];
    for (let sweep = 0; sweep < 30; sweep += 1) {
      for (let p = 0; p < n; p += 1) {
        for (let q = p + 1; q < n; q += 1) {
          if (A[p][q] === 0) continue;
          const half = Math.atan2(2 * A[p][q], A[q][q] - A[p][p]) / 2;
          const [c, s] = [Math.cos(half), Math.sin(half)];
          for (const M of [A, V]) for (const row of M) [row[p], row[q]] = turn(row[p], row[q], c, s);
          for (let k = 0; k < n; k += 1) [A[p][k], A[q][k]] = turn(A[p][k], A[q][k], c, s);
        }
      }
    }
    const order = A.map((row, i) => [row[i], V.map((v) => v[i])]).sort((a, b) => a[0] - b[0]);
    return { values: order.map(([value]) => value), vectors: order.map(([, vector]) => vector) };
  }

  /** The same start in the three coordinate systems: bias, then the two weights. */
  const starts = ({ mean: [m, n], s1, s2 }) => {
    const [w, v] = START, out = m * w + n * v;
    return [[0, w, v], [out, w, v], [out, s1 * w, s2 * v]];
  };

  function descend(hessian, start, lr, steps) {
    const path = [start];
    for (let t = 0; t < steps; t += 1) {
      const z = path[t];
      path.push(z.map((v, i) => v - lr * hessian[i].reduce((sum, h, j) => sum + h * z[j], 0)));
    }
    return path;
  }

  /** For each system: spectrum, κ² of its activations, best rate, steps at most, and a path. */
  function systems(cloud, steps) {
    return hessians(cloud).map((hessian, i) => {
      const { values } = eigen(hessian);
      const [low, high] = [values[0], values[2]];
      const rate = (high - low) / (high + low), lr = 2 / (high + low);
      const count = rate < 1e-9 ? 1 : Math.ceil(Math.log(100) / -Math.log(rate) - 1e-9);
      return { hessian, values, lr, rate, count, kappa2: high / low, path: descend(hessian, starts(cloud)[i], lr, steps) };
    });
  }

  /** The level curve zᵀBz = h² of a 2 × 2 matrix, as far as it lies within a window. */
  function level(B, h, window) {
    const { values, vectors: [[a, b], [c, d]] } = eigen(B);
    const [long, short] = values.map((value) => h / Math.sqrt(value));
    const end = Math.min(long, 2 * window);
    return [1, -1].flatMap((sign) => Array.from({ length: 41 }, (_, k) => {
      const x = sign * end * Math.sin(((k - 20) * Math.PI) / 40), y = sign * short * Math.sqrt(Math.max(0, 1 - (x / long) ** 2));
      return [a * x + c * y, b * x + d * y];
    }));
  }

  // --- words ---

  const short = (k) => number(k, k < 9.995 ? 2 : k < 99.95 ? 1 : 0);
  const list = ([a, b, c]) => `${a}, ${b} and ${c}`;

  function describe(cloud, [raw, centered, scaled]) {
    const [low, , high] = centered.values;
    const [byU, byD] = [raw.kappa2 / centered.kappa2, centered.kappa2 / scaled.kappa2].map((gain) => (gain < 1.005 ? "nothing" : `a factor of ${short(gain)}`));
    const bias = byD === "nothing" ? "" : high === 1 ? " (after U, the bias is the steepest direction)" : low === 1 ? " (after U, the bias is the flattest direction)" : "";
    const rest = cloud.r === 0 ? "Without correlation nothing is left to gain." : `What is left is due to the correlation: (1 + ${number(Math.abs(cloud.r), 2)}) / (1 − ${number(Math.abs(cloud.r), 2)}) = ${short(scaled.kappa2)}.`;
    return `κ(Ĥ)² = ${short(raw.kappa2)}, κ(ĤU)² = ${short(centered.kappa2)}, κ(ĤUD)² = ${short(scaled.kappa2)}: gradient descent reduces the distance to the minimum a hundredfold in at most ${list([raw, centered, scaled].map(({ count }) => number(count, 0)))} steps. Centering gains ${byU}, and scaling gains ${byD}${bias}. ${rest}`;
  }

  // --- the figure ---

  Explore.figure("bnp-cloud", (fig) => {
    const { state } = fig;
    let all;
    fig.slider({ id: "s1", label: "Standard deviation of h₁", min: 0.1, max: 2, step: 0.05, value: FIRST.s1 });
    fig.slider({ id: "s2", label: "Standard deviation of h₂", min: 0.1, max: 2, step: 0.05, value: FIRST.s2 });
    fig.slider({ id: "r", label: "Correlation r", min: -0.95, max: 0.95, step: 0.05, value: FIRST.r });
    fig.slider({ id: "steps", label: "Steps shown", min: 0, max: 60, step: 1, value: 20, format: (v) => number(v, 0) });
    fig.button("Center the cloud", () => { state.mean = [0, 0]; });
    fig.button("Center and scale it", () => fig.assign({ mean: [0, 0], s1: 1, s2: 1 }));
    fig.button("Back to the beginning", () => fig.assign(FIRST));
    state.mean = FIRST.mean;

    const RANGE = { x: { min: -3, max: 7, label: "h₁" }, y: { min: -3, max: 5.6, label: "h₂" } };
    const inside = (x, y) => [clamp(x, RANGE.x.min, RANGE.x.max), clamp(y, RANGE.y.min, RANGE.y.max)];
    const deviation = (v) => clamp(Number(v.toFixed(2)), 0.1, 2);
    const correlation = (v) => clamp(Number(v.toFixed(2)), -0.95, 0.95);
    const plot = fig.plot({
      title: "The cloud: drag its mean and its edges", height: 300, ...RANGE,
      alt: () => `Cloud of ${POINTS} activations with mean (${state.mean.map((v) => number(v, 2)).join(", ")}), standard deviations ${number(state.s1, 2)} and ${number(state.s2, 2)} and correlation ${number(state.r, 2)}.`,
    });
    plot.handle({
      label: "Mean of the cloud", series: 4, step: [0.1, 0.1], get: () => state.mean, set: (x, y) => { state.mean = [x, y]; },
      describe: (x, y) => `h₁ ${number(x, 2)}, h₂ ${number(y, 2)}`,
    });
    plot.handle({
      label: "Right edge of the cloud: standard deviation of h₁, and correlation", series: 1,
      get: () => inside(...place(state, [2, 0])),
      set: (x, y) => {
        const [a, b] = inside(...place(state, [2, 0])); // an arrow key moves one of the two
        if (x !== a) fig.assign({ s1: deviation((x - state.mean[0]) / 2) });
        if (y !== b) fig.assign({ r: correlation((y - state.mean[1]) / (2 * state.s2)) });
      },
      describe: () => `standard deviation of h₁ ${number(state.s1, 2)}, correlation ${number(state.r, 2)}`,
    });
    const top = () => inside(...place(state, [2 * state.r, 2 * Math.sqrt(1 - state.r ** 2)]));
    plot.handle({
      label: "Upper edge of the cloud: standard deviation of h₂", move: "y", series: 1, get: top,
      set: (_, y) => fig.assign({ s2: deviation((y - state.mean[1]) / 2) }), describe: () => `standard deviation of h₂ ${number(state.s2, 2)}`,
    });
    const spectrum = fig.plot({
      title: "Eigenvalues of the Hessian, and their ratio κ²", height: 300, margin: { left: 66, top: 10 },
      x: { min: 1e-5, max: 100, log: true, ticks: [1e-4, 1e-2, 1, 100], label: "eigenvalue" }, y: { min: 0.6, max: 3.7, ticks: SYSTEMS.map(([name], i) => [3 - i, name]) },
      alt: () => all.map(({ values, kappa2 }, i) => `${SYSTEMS[i][0]}: eigenvalues ${list(values.map((v) => number(v, 3)))}, ratio ${short(kappa2)}.`).join(" "),
    });
    const row = el("div", { style: "display:grid;gap:0.75rem;grid-column:1/-1;max-width:52rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,8.5rem),1fr))" });
    fig.panels.append(row);
    const planes = SYSTEMS.map(([name], i) => fig.plot({
      title: name, width: 190, height: 190, bare: true, into: row, x: { min: -1, max: 1 }, y: { min: -1, max: 1 },
      alt: () => `${name}: level curves over the two weights, and ${state.steps} steps of gradient descent at the learning rate ${number(all[i].lr, 3)}.`,
    }));

    fig.draw(() => {
      all = systems(state, state.steps);
      const circle = Array.from({ length: 73 }, (_, k) => [Math.cos((k * Math.PI) / 36), Math.sin((k * Math.PI) / 36)]);
      plot.guide(0, 0);
      plot.curve([[0, 0], state.mean], { series: 4, dash: "4 3", width: 1.5 });
      plot.dots(white[0].map((a, k) => place(state, [a, white[1][k]])), { series: 7, radius: 2.4 });
      for (const k of [1, 2]) plot.curve(circle.map(([a, b]) => place(state, [k * a, k * b])), { series: 1, width: 1.3, faint: k === 1 });
      all.forEach(({ hessian, values, kappa2, count, path }, i) => {
        const [name, series, shape] = SYSTEMS[i];
        spectrum.curve([[values[0], 3 - i], [values[2], 3 - i]], { series, width: 6, faint: true });
        spectrum.dots(values.map((v) => [v, 3 - i]), { series, shape, radius: 4 });
        spectrum.text([Math.sqrt(values[0] * values[2]), 3 - i], `κ² = ${short(kappa2)}`, { series, bold: true, anchor: "middle", dy: -9 });
        const seen = path.map(([, x, y]) => [x, y]);
        const size = 1.12 * Math.hypot(...seen[0]), B = hessian.slice(1).map((line) => line.slice(1));
        planes[i].axes({ min: -size, max: size }, { min: -size, max: size });
        const h = Math.sqrt(seen[0].reduce((sum, v, p) => sum + v * (B[p][0] * seen[0][0] + B[p][1] * seen[0][1]), 0));
        for (let k = 1; k <= 12; k += 1) planes[i].curve([...level(B, (k * h) / 4, size)], { class: "ex-level" });
        planes[i].curve(seen, { series, width: 1.1 });
        planes[i].dots(seen, { series, shape, radius: 2 });
        planes[i].dots([seen[0]], { series, shape: "ring", radius: 5 });
        planes[i].dots([[0, 0]], { shape: "cross", radius: 4 });
        planes[i].node.firstChild.textContent = `${name}: ${number(count, 0)} step${count === 1 ? "" : "s"}`;
      });
      const gain = all[1].kappa2 / all[2].kappa2;
      fig.say(describe(state, all), state.s1 === state.s2 && gain > 99.9 && "Task solved: D also makes the features as large as the column of ones.");
    });

    fig.expose({ points: () => white[0].map((a, k) => place(state, [a, white[1][k]])), systems: () => all, starts: () => starts(state) });
  });
})();
