/* Dropout as an ensemble: draw a mask over six units, or make one, and compare the mean of all 64
   subnetworks with one pass whose inputs are scaled by 1 − p. */
(function () {
  "use strict";
  const { number, random, svg } = Explore;

  // --- the mathematics ---

  const UNITS = 6, SCORES = 3, SUBNETWORKS = 2 ** UNITS;
  const LETTERS = "ABC";
  const NEAR = 0.05; // how near the task asks one pass to come

  /** Inputs, as a ReLU might leave them, and weights, both with one decimal. */
  function draw(seed) {
    const { normal } = random(seed);
    const round = (v) => Math.round(10 * v) / 10;
    const x = Array.from({ length: UNITS }, () => round(0.5 + Math.abs(normal())));
    return { x, W: Array.from({ length: SCORES }, () => Array.from({ length: UNITS }, () => round(normal()))) };
  }

  /** Row k of all masks: the binary digits of k, the most significant first; 0 drops a unit. */
  const mask = (k) => Array.from({ length: UNITS }, (_, i) => (k >> (UNITS - 1 - i)) & 1);
  const chance = (k, p) => mask(k).reduce((product, kept) => product * (kept ? 1 - p : p), 1);
  const scores = ({ x, W }, factors) => W.map((row) => row.reduce((sum, w, i) => sum + w * factors[i] * x[i], 0));

  function softmax(s) {
    const largest = Math.max(...s), e = s.map((v) => Math.exp(v - largest)), sum = e.reduce((a, b) => a + b);
    return e.map((v) => v / sum);
  }

  const add = (s) => [s.reduce((a, b) => a + b)];
  const OUTPUTS = { softmax, relu: (s) => add(s.map((v) => Math.max(v, 0))), linear: add };

  /** The outputs of all subnetworks, their means with these weights, and the scaled pass. */
  function ensemble(network, kind, p) {
    const all = Array.from({ length: SUBNETWORKS }, (_, k) => OUTPUTS[kind](scores(network, mask(k))));
    const q = all.map((_, k) => chance(k, p));
    const scaled = OUTPUTS[kind](scores(network, new Array(UNITS).fill(1 - p)));
    const logarithms = kind === "softmax" && mean(all.map((pi) => pi.map(Math.log)), q);
    return { all, scaled, arithmetic: mean(all, q), geometric: logarithms && softmax(logarithms) };
  }

  /** Mean of vectors with weights, which need not add up to one. */
  function mean(vectors, weights) {
    const total = weights.reduce((a, b) => a + b);
    return vectors[0].map((_, c) => vectors.reduce((sum, v, k) => sum + weights[k] * v[c], 0) / total);
  }

  const apart = (a, b) => Math.max(...a.map((v, c) => Math.abs(v - b[c])));

  // --- the figure ---

  const SHAPES = ["circle", "square", "diamond"];

  Explore.figure("subnetworks", (fig) => {
    const { state } = fig;
    let seed = 1, network = draw(seed), seenP = 0.5, now;
    const uniform = random(1000);
    const forget = () => fig.assign({ drawn: 0, counts: new Array(SUBNETWORKS).fill(0) });
    const drawMasks = (n) => {
      for (let i = 0; i < n; i += 1) {
        state.k = Array.from({ length: UNITS }, () => (uniform() < state.p ? 0 : 1)).reduce((k, kept) => 2 * k + kept, 0);
        state.counts[state.k] += 1;
        state.drawn += 1;
      }
    };
    state.k = SUBNETWORKS - 1;
    forget();
    fig.slider({ id: "p", label: "Probability p of dropping", min: 0.05, max: 0.95, step: 0.05, value: 0.5 });
    fig.choice({ id: "kind", label: "Output of the network", options: [["softmax", "softmax of A, B, C"], ["relu", "sum of their ReLUs"], ["linear", "their sum"]], value: "softmax" });
    fig.button("Draw a mask", () => drawMasks(1));
    fig.button("Draw 100", () => drawMasks(100));
    fig.button("Forget the draws", forget);
    fig.button("New weights", () => { network = draw((seed += 1)); forget(); });
    const picture = fig.plot({
      title: "Press a unit to drop or keep it", width: 340, height: 330, bare: true, x: { min: 0, max: 1 }, y: { min: 0, max: 1 },
      alt: () => `Six units with lines to three scores. ${dropped(state.k)}`,
    });
    const chart = fig.plot({
      title: "Its output, and means", width: 340, height: 330, margin: { left: 100 }, x: { min: 0, max: 1 }, y: { min: 0, max: 5, ticks: [] },
      alt: () => `Outputs of the subnetwork, of means over subnetworks and of one scaled pass, as points on one line each.`,
    });
    fig.legend([[1, "A", "circle"], [2, "B", "square"], [3, "C", "diamond"], [5, "sum", "circle"], [0, "positive weight", "line"], [0, "negative weight", "dashed"]]);

    const height = (i) => 0.92 - 0.168 * i, level = (c) => 0.8 - 0.3 * c;
    const units = Array.from({ length: UNITS }, (_, i) => {
      const [cx, cy] = picture.pixel([0.16, height(i)]);
      const node = svg("g", { role: "checkbox", tabindex: "0", class: "ex-handle ex-s0", style: "cursor: pointer; touch-action: manipulation", transform: `translate(${cx} ${cy})` }, picture.svg);
      for (const [kind, r] of [["reach", 24], ["ring", 20]]) svg("circle", { class: `ex-${kind}`, r }, node);
      const toggle = () => fig.set({ k: state.k ^ (1 << (UNITS - 1 - i)) });
      node.addEventListener("click", toggle);
      node.addEventListener("keydown", (event) => { if (event.key === " " || event.key === "Enter") { event.preventDefault(); toggle(); } });
      return node;
    });
    picture.svg.setAttribute("role", "group");

    function dropped(k) {
      const numbers = mask(k).flatMap((kept, i) => (kept ? [] : [i + 1]));
      if (!numbers.length) return "No unit is dropped.";
      return numbers.length === 1 ? `Unit ${numbers[0]} is dropped.` : `Units ${numbers.slice(0, -1).join(", ")} and ${numbers.at(-1)} are dropped.`;
    }

    function drawNetwork(kept, s) {
      network.W.forEach((row, c) => row.forEach((w, i) => {
        if (kept[i]) picture.curve([[0.21, height(i)], [0.66, level(c)]], { dash: w < 0, width: 0.4 + 1.6 * Math.abs(w) });
      }));
      kept.forEach((one, i) => {
        units[i].setAttribute("aria-checked", String(Boolean(one)));
        units[i].setAttribute("aria-label", `Unit ${i + 1}, value ${number(network.x[i], 1)}, ${one ? "kept" : "dropped"}`);
        if (!one) picture.dots([[0.16, height(i)]], { series: 4, shape: "cross", radius: 15 });
        picture.text([0.16, height(i)], number(network.x[i], 1), { anchor: "middle", dy: 4, bold: one });
      });
      s.forEach((v, c) => {
        picture.dots([[0.69, level(c)]], { series: c + 1, shape: SHAPES[c], radius: 6 });
        picture.text([0.69, level(c)], `${LETTERS[c]} = ${number(v, 2)}`, { dx: 14, dy: 4, series: c + 1, bold: true });
      });
    }

    fig.draw(({ k, p, kind }) => {
      if (p !== seenP) forget(); // the masks were drawn with another probability
      seenP = p;
      const { drawn: n, counts } = state, s = scores(network, mask(k)), found = ensemble(network, kind, p);
      const sofar = n ? mean(found.all, counts) : null;
      now = { ...found, output: found.all[k], sofar };
      drawNetwork(mask(k), s);
      const rows = [["one scaled pass", found.scaled], ...(found.geometric ? [["geometric mean", found.geometric]] : []), ["arithmetic mean", found.arithmetic], [`mean of ${n} drawn`, sofar], ["this subnetwork", now.output]];
      const color = (c) => (kind === "softmax" ? c + 1 : 5);
      const values = found.all.flat(), [low, high] = kind === "softmax" ? [0, 1] : [Math.min(0, ...values), Math.max(0.1, ...values)];
      chart.axes({ min: low, max: high, label: kind === "softmax" ? "probability" : "output" }, { min: -0.2, max: rows.length + 0.9, ticks: [...rows.map(([words], i) => [i + 0.5, words]), [rows.length + 0.5, "all 64"]] });
      found.scaled.forEach((v) => chart.guide(v, null));
      rows.forEach(([, row], i) => row && row.forEach((v, c) => chart.dots([[v, i + 0.5]], { series: color(c), shape: SHAPES[c], radius: 5 })));
      found.scaled.forEach((_, c) => chart.curve(found.all.flatMap((out) => [[out[c], rows.length + 0.3], [out[c], rows.length + 0.7], [NaN, NaN]]), { series: color(c), width: 1 }));
      const gap = apart(found.arithmetic, found.scaled), list = (row) => row.map((v, c) => (row.length > 1 ? `${LETTERS[c]} ` : "") + number(v, 3)).join(", ");
      const verdict = {
        softmax: `One pass gives ${list(found.scaled)}: exactly the normalized geometric mean. The arithmetic mean is up to ${number(gap)} away.`,
        relu: `One pass gives ${list(found.scaled)}, ${gap < 1e-9 ? "the same here: no ReLU changes sides" : `too little by ${number(gap)}: a ReLU of a mean is at most the mean of the ReLU`}.`,
        linear: `One pass gives ${list(found.scaled)}: exactly the mean, since the output is linear in the mask.`,
      }[kind];
      fig.say(`${dropped(k)} Output: ${list(now.output)}. ${n ? `Mean of the ${n} drawn: ${list(sofar)}. ` : ""}Mean of all 64 subnetworks: ${list(found.arithmetic)}. ${verdict}`,
        kind === "softmax" && seed === 1 && gap <= NEAR && `Task solved: no probability differs by more than ${NEAR}.`);
    });
    fig.expose({ draw, mask, chance, ensemble, network: () => network, now: () => now });
  });
})();
