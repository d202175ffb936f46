/* Two layers, each with a cloud of two features that it reads, and the spectrum of their Hessians
   ĤᵀĤ/N: with gradient descent as it is, on centered inputs, with batch normalization of the hidden
   activations, and with BNP in both layers. One learning rate serves both layers. */
(function () {
  "use strict";
  const { number, clamp, random } = Explore;
  const POINTS = 60, R = 0.5; // of each cloud; correlation of its two features
  const LAYERS = [["inputs", 1], ["hidden", 0.6]]; // with the standard deviation of both features
  const END = 6, FIRST = { inputs: 3, hidden: 0.8 };
  const TARGET = 10; // times as many steps with BN as with BNP
  const METHODS = [ // name, series, shape, and what each layer does to its cloud
    ["plain", 2, "circle", ["raw", "raw"]],
    ["inputs centered", 6, "square", ["centered", "raw"]],
    ["BN", 1, "diamond", ["raw", "normalized"]],
    ["BNP", 3, "cross", ["normalized", "normalized"]],
  ];

  // --- the mathematics ---

  /** Points with mean 0, standard deviation 1 and correlation R, exactly. */
  const white = (() => {
    const draw = random(5).normal;
    const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0) / POINTS;
    const column = () => { const u = Array.from({ length: POINTS }, draw), mean = u.reduce((sum, v) => sum + v, 0) / POINTS; return u.map((v) => v - mean); };
    const unit = (u) => { const length = Math.sqrt(dot(u, u)); return u.map((v) => v / length); };
    const first = unit(column()), other = column(), slope = dot(first, other);
    const second = unit(other.map((v, i) => v - slope * first[i]));
    return first.map((a, i) => [a, R * a + Math.sqrt(1 - R * R) * second[i]]);
  })();

  const points = (mean, s) => white.map((point) => point.map((v) => mean + s * v));

  /** Eigenvalues of ĤᵀĤ/N for features with equal means m and deviations s: one belongs to the
      direction (1, −1), two to the plane of the bias and (1, 1). */
  function spectrum(m, s) {
    const along = s * s * (1 + R), half = (1 + 2 * m * m + along) / 2;
    const high = half + Math.sqrt(half * half - along);
    return [along / high, s * s * (1 - R), high];
  }

  const layer = (kind, m, s) => spectrum(kind === "raw" ? m : 0, kind === "normalized" ? 1 : s);

  /** For each method: the eigenvalues of both layers, their ratio κ, and the steps at most. */
  const methods = (means) => METHODS.map(([name, , , kinds]) => {
    const values = LAYERS.map(([which, s], i) => layer(kinds[i], means[which], s));
    const kappa = Math.max(...values.flat()) / Math.min(...values.flat());
    return { name, values, kappa, count: Math.ceil(Math.log(100) / Math.log((kappa + 1) / (kappa - 1)) - 1e-9) };
  });

  // --- the figure ---

  Explore.figure("gain", (fig) => {
    const { state } = fig;
    let all;
    fig.slider({ id: "inputs", label: "Mean of each input", min: 0, max: END, step: 0.1, value: FIRST.inputs, format: (v) => number(v, 1) });
    fig.slider({ id: "hidden", label: "Mean of each hidden activation", min: 0, max: END, step: 0.1, value: FIRST.hidden, format: (v) => number(v, 1) });
    fig.button("Center the inputs", () => fig.assign({ inputs: 0 }));
    fig.button("Back to the beginning", () => fig.assign(FIRST));

    const axis = { min: -3, max: 8.5 };
    const clouds = fig.plot({
      title: "What the two layers read: drag the means", height: 300, x: { ...axis, label: "first feature" }, y: { ...axis, label: "second feature" },
      alt: () => `Two clouds. The inputs have mean ${number(state.inputs, 1)} in both features, the hidden activations ${number(state.hidden, 1)}.`,
    });
    for (const [id, words, series] of [["inputs", "Mean of the inputs", 5], ["hidden", "Mean of the hidden activations", 4]]) {
      clouds.handle({
        label: words, series, move: "x", step: [0.1, 0.1], get: () => [state[id], state[id]],
        set: (x) => fig.assign({ [id]: clamp(Number(x.toFixed(1)), 0, END) }), describe: (x) => `${number(x, 1)} in both features`,
      });
    }
    const spectra = fig.plot({
      title: "Eigenvalues of both layers, and their ratio κ", height: 300, margin: { left: 104, top: 10 },
      x: { min: 5e-3, max: 200, log: true, ticks: [0.01, 0.1, 1, 10, 100], label: "eigenvalue" }, y: { min: 0.5, max: 4.7, ticks: METHODS.map(([name], i) => [4 - i, name]) },
      alt: () => all.map(({ name, kappa }) => `${name}: ratio ${number(kappa, 1)}.`).join(" "),
    });
    const counts = fig.plot({
      title: "Steps for a hundredth of the distance, at most", height: 300, x: { min: 0, max: END, label: "mean of each input" }, y: { min: 3, max: 3e4, log: true, label: "steps" },
      alt: () => `Steps against the mean of the inputs, now ${number(state.inputs, 1)}. ${all.map(({ name, count }) => `${name}: ${number(count, 0)}.`).join(" ")}`,
    });
    fig.legend([[5, "layer 1: inputs", "circle"], [4, "layer 2: hidden", "square"], ...METHODS.map(([name, series]) => [series, `steps: ${name}`, "dashed"])]);

    fig.draw(({ inputs, hidden }) => {
      all = methods(state);
      clouds.guide(0, 0);
      clouds.dots(points(inputs, LAYERS[0][1]), { series: 5, radius: 2.2 });
      clouds.dots(points(hidden, LAYERS[1][1]), { series: 4, radius: 2, shape: "square" });
      counts.guide(inputs);
      METHODS.forEach(([, series, shape], i) => {
        const { values, kappa, count } = all[i], flat = values.flat(), y = 4 - i;
        spectra.curve([[Math.min(...flat), y], [Math.max(...flat), y]], { series, width: 6, faint: true });
        spectra.dots(values[0].map((v) => [v, y]), { series: 5, radius: 4 });
        spectra.dots(values[1].map((v) => [v, y]), { series: 4, radius: 3, shape: "square" });
        spectra.text([1, y], `κ = ${number(kappa, kappa < 99.95 ? 1 : 0)}`, { series, bold: true, anchor: "middle", dy: -10 });
        counts.dots([[inputs, count]], { series, shape, radius: 4 });
      });
      for (const i of [3, 2, 1, 0]) counts.curve((m) => methods({ inputs: m, hidden })[i].count, { series: METHODS[i][1], dash: true, width: 2 }); // plain last: its dashes show on BN
      const [plain, centered, bn, bnp] = all.map(({ count }) => count), ratio = bn / bnp;
      const why = inputs === 0 ? "The inputs are centered, and BN and BNP agree."
        : `BN needs ${number(ratio, 1)} times as many steps as BNP, since layer 1 reads the same inputs with BN as without.`;
      fig.say(`The distance to the minimum falls a hundredfold in at most ${number(plain, 0)} steps of gradient descent, ${number(centered, 0)} with centered inputs, ${number(bn, 0)} with BN and ${number(bnp, 0)} with BNP. ${why}`,
        Math.abs(ratio - TARGET) < 0.5 && `Task solved: BN needs ${TARGET} times as many steps as BNP.`);
    });
    fig.expose({ points, methods: () => all });
  });
})();
