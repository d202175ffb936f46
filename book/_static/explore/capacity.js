/* Capacity and sample size move the gap: polynomials of degree 0 to 11 by least squares.
   y = sin(πx) + 0.3 ε with x uniform on [−1, 1], as in optdl.erm.NoisyCurve. */
(function () {
  "use strict";
  const { number, clamp, random } = Explore;

  // --- the mathematics ---

  const TERMS = 12;
  const NOISE = 0.3;
  const BAYES = NOISE ** 2;
  const SAMPLES = 100;
  const TARGET = 0.18; // a median risk that is to be reached
  const truth = (x) => Math.sin(Math.PI * x);

  /** Legendre polynomials, orthonormal under the uniform distribution on [−1, 1]. */
  function basis(x) {
    const p = [1, x];
    for (let k = 1; k < TERMS - 1; k += 1) p.push(((2 * k + 1) * x * p[k] - k * p[k - 1]) / (k + 1));
    return p.map((value, k) => Math.sqrt(2 * k + 1) * value);
  }

  /** Draw m examples; a larger sample of the same seed begins with the smaller one. */
  function sample(m, seed) {
    const uniform = random(seed), x = [], y = [];
    for (let i = 0; i < m; i += 1) {
      x.push(2 * uniform() - 1);
      y.push(truth(x[i]) + NOISE * uniform.normal());
    }
    return { x, y };
  }

  /** Householder's QR of the design, with y as last column: one factorization serves all degrees. */
  function factor({ x, y }) {
    const m = x.length;
    const columns = Array.from({ length: TERMS + 1 }, () => new Float64Array(m));
    x.forEach((v, i) => basis(v).forEach((value, k) => { columns[k][i] = value; }));
    columns[TERMS].set(y);
    for (let k = 0; k < Math.min(TERMS, m - 1); k += 1) {
      const v = columns[k].slice(k);
      const dot = (w, from) => v.reduce((sum, entry, i) => sum + entry * w[from + i], 0);
      v[0] += Math.sqrt(dot(v, 0)) * (v[0] > 0 ? 1 : -1);
      const square = dot(v, 0);
      for (const column of columns.slice(k)) {
        const share = (2 * dot(column, k)) / square;
        v.forEach((entry, i) => { column[k + i] -= share * entry; });
      }
    }
    return columns;
  }

  /** Coefficients of the least squares fit of one degree, by back substitution. */
  function fit(columns, degree) {
    const c = new Float64Array(degree + 1);
    for (let k = degree; k >= 0; k -= 1) {
      c[k] = columns[TERMS][k];
      for (let j = k + 1; j <= degree; j += 1) c[k] -= columns[j][k] * c[j];
      c[k] /= columns[k][k];
    }
    return c;
  }

  /** The coefficients ½ ∫ sin(πx) φ_k(x) dx of the truth, by Simpson's rule. */
  const TRUTH = (() => {
    const n = 2000, sums = new Float64Array(TERMS);
    for (let i = 0; i <= n; i += 1) {
      const x = -1 + (2 * i) / n, weight = (i === 0 || i === n ? 1 : i % 2 ? 4 : 2) / (3 * n);
      basis(x).forEach((value, k) => { sums[k] += weight * truth(x) * value; });
    }
    return sums;
  })();

  /** Empirical risk and risk of the squared loss, for every degree; the risk by Parseval's equation. */
  function risks(points) {
    const columns = factor(points), residuals = columns[TERMS];
    return Array.from({ length: TERMS }, (_, degree) => {
      const rest = residuals.slice(degree + 1).reduce((sum, r) => sum + r * r, 0);
      const error = fit(columns, degree).reduce((sum, c, k) => sum + (c - TRUTH[k]) ** 2 - TRUTH[k] ** 2, 0.5);
      return { empirical: rest / points.x.length, risk: error + BAYES };
    });
  }

  /** Medians over many samples of m examples, for every degree. */
  function medians(m, samples = SAMPLES) {
    const all = Array.from({ length: samples }, (_, k) => risks(sample(m, k + 1)));
    const median = (degree, name) => {
      const sorted = all.map((one) => one[degree][name]).sort((a, b) => a - b);
      return (sorted[(samples - 1) >> 1] + sorted[samples >> 1]) / 2;
    };
    return Array.from({ length: TERMS }, (_, k) => ({ empirical: median(k, "empirical"), risk: median(k, "risk") }));
  }

  // --- the figure ---

  Explore.figure("capacity", (fig) => {
    const known = {};
    let seed = 1, now = risks(sample(12, seed)), lines;
    fig.slider({ id: "m", label: "Examples m", min: 12, max: 100, step: 1, value: 12, format: String });
    fig.slider({ id: "degree", label: "Capacity: degree", min: 0, max: 11, step: 1, value: 3, format: String });
    fig.button("New sample", () => { seed += 1; });
    const data = fig.plot({
      title: "One sample and its fit", height: 250, x: { min: -1.05, max: 1.05, label: "x", ticks: [-1, 0, 1] }, y: { min: -2.2, max: 2.2, label: "y", ticks: [-2, -1, 0, 1, 2] },
      alt: () => `${fig.state.m} noisy examples of one period of a sine, and the polynomial of degree ${fig.state.degree} that fits them best.`,
    });
    const chart = fig.plot({
      title: "Risk against capacity", height: 250, x: { min: -0.4, max: 11.4, label: "degree", ticks: [0, 2, 4, 6, 8, 10] },
      y: { min: 1e-3, max: 10, log: true, label: "mean squared loss" },
      alt: () => `Empirical risk and risk against the degree for ${fig.state.m} examples, with the Bayes risk of 0.09.`,
    });
    const inside = (v) => clamp(v, 1.2e-3, 8.5);
    chart.handle({
      label: "Degree", move: "x", series: 2, step: [1, 1],
      get: () => [fig.state.degree, inside(now[fig.state.degree].risk)],
      set: (degree) => fig.assign({ degree: clamp(Math.round(degree), 0, 11) }),
      describe: (degree) => `degree ${degree}, risk ${number(now[degree].risk)}, empirical risk ${number(now[degree].empirical)}`,
    });
    fig.legend([[2, "risk J*", "square"], [1, "empirical risk J", "circle"], [0, "lines: medians of 100 samples", "line"], [3, "Bayes risk", "dashed"], [7, "truth", "dashed"]]);

    fig.draw(({ m, degree }) => {
      const points = sample(m, seed);
      now = risks(points);
      lines = known[m] ||= medians(m);
      const c = fit(factor(points), degree);
      data.curve(truth, { series: 7, dash: true });
      data.curve((x) => basis(x).reduce((sum, value, k) => sum + (k <= degree ? c[k] * value : 0), 0), { series: 2 });
      data.dots(points.x.map((x, i) => [x, points.y[i]]), { series: 1 });
      chart.curve([[-0.4, BAYES], [11.4, BAYES]], { series: 3, dash: true });
      [["risk", 2, "square"], ["empirical", 1, "circle"]].forEach(([name, series, shape]) => {
        chart.curve(lines.map((one, k) => [k, Math.max(1e-5, one[name])]), { series });
        chart.dots(now.map((one, k) => [k, inside(one[name])]), { series, shape, radius: 3.5 });
      });
      const { empirical, risk } = now[degree];
      chart.curve([[degree, inside(empirical)], [degree, inside(risk)]], { series: 0, width: 3 });
      const least = now.reduce((best, one, k) => (one.risk < now[best].risk ? k : best), 0);
      const regime = empirical >= BAYES ? "" : degree === m - 1 ? " The fit passes through every example." : " The empirical risk lies below the Bayes risk: the fit follows some of the noise.";
      fig.say(`Degree ${degree} on ${m} examples: empirical risk ${number(empirical)}, risk ${number(risk)}, gap ${number(risk - empirical)} `
        + `(median over samples ${number(lines[degree].risk - lines[degree].empirical)}). The Bayes risk is ${BAYES}.${regime} On this sample degree ${least} has the lowest risk.`,
        lines.findLastIndex((one) => one.risk < TARGET) === degree && `Task solved: no higher degree has a median risk below ${TARGET} for m = ${m}.`);
    });
    fig.expose({ sample, risks, medians, now: () => now, seed: () => seed });
  });
})();
