/* The scale of the first weights: mean squares of the activations and of the gradients through 50
   layers, measured and predicted, where the predictions cross 1, and histograms of the activations. */
(function () {
  "use strict";
  const { number, clamp, random } = Explore;

  // --- the mathematics ---

  const WIDTH = 100, DEPTH = 50, EXAMPLES = 10;
  const SCALES = { min: 0.2, max: 16 };
  const sigmoid = (z) => 1 / (1 + Math.exp(-z));
  const ACTIVATIONS = {
    tanh: { value: Math.tanh, slope: (z) => 1 - Math.tanh(z) ** 2 },
    relu: { value: (z) => Math.max(z, 0), slope: (z) => (z > 0 ? 1 : 0) },
    sigmoid: { value: sigmoid, slope: (z) => sigmoid(z) * sigmoid(-z) },
    linear: { value: (z) => z, slope: () => 1 },
  };
  const meanSquare = (values) => values.reduce((sum, v) => sum + v * v, 0) / values.length;

  /** Inputs, gradients at the output, and weights of variance 1, drawn in this order. */
  function draw(seed) {
    const { normal } = random(seed);
    const fill = (length) => Float64Array.from({ length }, normal);
    const [inputs, upstream] = [fill(EXAMPLES * WIDTH), fill(EXAMPLES * WIDTH)];
    return { inputs, upstream, weights: Array.from({ length: DEPTH }, () => fill(WIDTH * WIDTH)) };
  }

  /** Send the examples through 50 layers whose weights have the standard deviation factor/√n. */
  function forward({ inputs, weights }, factor, { value }) {
    const layers = [inputs], sums = [], scale = factor / Math.sqrt(WIDTH);
    for (const W of weights) {
      const h = layers.at(-1), z = new Float64Array(h.length);
      for (let e = 0; e < h.length; e += WIDTH) {
        for (let i = 0; i < WIDTH; i += 1) {
          let sum = 0;
          for (let j = 0; j < WIDTH; j += 1) sum += W[i * WIDTH + j] * h[e + j];
          z[e + i] = scale * sum;
        }
      }
      sums.push(z);
      layers.push(z.map(value));
    }
    return { layers, sums };
  }

  /** Mean square of the gradient with respect to each layer's activations, from the input on. */
  function backward({ upstream, weights }, factor, { slope }, sums) {
    const scale = factor / Math.sqrt(WIDTH), squares = [meanSquare(upstream)];
    let g = upstream;
    for (let l = DEPTH - 1; l >= 0; l -= 1) {
      const before = new Float64Array(g.length), W = weights[l];
      for (let e = 0; e < g.length; e += WIDTH) {
        for (let i = 0; i < WIDTH; i += 1) {
          const delta = scale * slope(sums[l][e + i]) * g[e + i];
          if (delta !== 0) for (let j = 0; j < WIDTH; j += 1) before[e + j] += delta * W[i * WIDTH + j];
        }
      }
      g = before;
      squares.unshift(meanSquare(g));
    }
    return squares;
  }

  /** E f(√variance t)² for a standard normal t, by the midpoint rule. */
  function expectation(f, variance) {
    let sum = 0, mass = 0;
    for (let t = -7.98; t < 8; t += 0.04) {
      const weight = Math.exp((-t * t) / 2);
      sum += weight * f(Math.sqrt(variance) * t) ** 2;
      mass += weight;
    }
    return sum / mass;
  }

  /** Both mean squares in layers of infinite width. */
  function predict(factor, { value, slope }) {
    const activations = [1], gradients = [1], slopes = [];
    for (let l = 0; l < DEPTH; l += 1) {
      const variance = factor ** 2 * activations[l];
      activations.push(expectation(value, variance));
      slopes.push(factor ** 2 * expectation(slope, variance));
    }
    for (const s of slopes.reverse()) gradients.unshift(s * gradients[0]);
    return { activations, gradients };
  }

  /** Predicted mean squares after 50 layers for many scales, and the scales where they cross 1. */
  function sweep(activation) {
    const ends = (factor) => {
      const { activations, gradients } = predict(factor, activation);
      return { forward: activations[DEPTH], backward: gradients[0] };
    };
    const scales = Array.from({ length: 81 }, (_, k) => SCALES.min * (SCALES.max / SCALES.min) ** (k / 80));
    const values = scales.map(ends);
    const cross = (kind) => {
      const k = values.findIndex((v, i) => i > 0 && values[i - 1][kind] < 1 && v[kind] >= 1);
      if (k < 0) return null;
      let [low, high] = [scales[k - 1], scales[k]];
      for (let i = 0; i < 30; i += 1) {
        const middle = Math.sqrt(low * high);
        if (ends(middle)[kind] < 1) low = middle;
        else high = middle;
      }
      return high;
    };
    return { scales, values, crossings: { forward: cross("forward"), backward: cross("backward") } };
  }

  const measure = (drawn, factor, activation) => {
    const { layers, sums } = forward(drawn, factor, activation);
    return { layers, activations: layers.map(meanSquare), gradients: backward(drawn, factor, activation, sums) };
  };

  /** A histogram of 60 bins from −1.5 to 1.5; what lies beyond is counted in the outer bins. */
  function counts(values) {
    const found = new Array(60).fill(0);
    for (const v of values) found[clamp(Math.floor((v + 1.5) * 20), 0, 59)] += 1;
    return found;
  }

  // --- the figure ---

  const SHOWN = [1, 10, 20, 30, 40, 50];

  /** What fifty layers make of a mean square of 1. */
  const fate = (v) => (v < 1e-3 ? "vanishes" : v < 0.1 ? "shrinks" : v <= 10 ? "keeps its size" : v <= 1e3 ? "grows" : "explodes");

  const axis = (k) => ({ min: 10 ** -k, max: 10 ** k, log: true, label: "mean square", ticks: [-k, 0, k].map((e) => [10 ** e, Explore.power(e)]) });

  Explore.figure("signal", (fig) => {
    let seed = 1, drawn = draw(seed), measured, predicted, shown;
    const sweeps = {};
    const swept = () => (sweeps[fig.state.activation] ??= sweep(ACTIVATIONS[fig.state.activation]));
    fig.slider({ id: "factor", label: "Weight scale √n · σ", ...SCALES, value: 1, log: true });
    fig.choice({ id: "activation", label: "Activation", options: [["tanh", "tanh"], ["relu", "ReLU"], ["sigmoid", "sigmoid"], ["linear", "linear"]], value: "tanh" });
    fig.button("Glorot: 1", () => fig.assign({ factor: 1 }));
    fig.button("He: √2", () => fig.assign({ factor: Math.SQRT2 }));
    fig.button("New weights", () => { drawn = draw((seed += 1)); });
    const chart = fig.plot({
      title: "Mean squares through 50 layers", height: 420, x: { min: 0, max: DEPTH, label: "layer (0 is the input)" },
      y: axis(20),
      alt: () => `Mean squares of activations and of gradients by layer, on a logarithmic axis.`,
    });
    const column = fig.column();
    const scales = fig.plot({
      title: "After 50 layers, by scale", height: 190, into: column, x: { ...SCALES, log: true, label: "weight scale √n · σ", ticks: [0.2, 0.5, 1, 2, 5, 10].map((v) => [v, String(v)]) }, y: axis(6),
      alt: () => `Predicted mean squares after 50 layers against the scale of the weights, on logarithmic axes. ${crossings()}`,
    });
    const histograms = fig.plot({
      title: "Histograms of the activations", height: 200, into: column, x: { min: -1.5, max: 1.5, label: "activation" }, y: { min: 0, max: 6.2, ticks: SHOWN.map((l, k) => [5 - k, String(l)]), label: "layer" },
      alt: () => `Histograms of the activations in layers ${SHOWN.join(", ")}.`,
    });
    fig.legend([[1, "activations, forward", "circle"], [2, "gradients, backward", "square"], [0, "lines: predicted", "line"], [0, "the predicted mean square is 1", "ring"]]);
    const crossings = () => {
      const { forward, backward } = swept().crossings;
      const at = (v) => (v ? `at scale ${number(v, 2)}` : "at no scale");
      return `By the prediction, the mean square of the activations in layer 50 crosses 1 ${at(forward)}, that of the gradient at the input ${at(backward)}.`;
    };

    fig.draw(({ factor, activation: name }) => {
      const activation = ACTIVATIONS[name];
      if (shown !== `${factor} ${name} ${seed}`) {
        measured = measure(drawn, factor, activation);
        predicted = predict(factor, activation);
        shown = `${factor} ${name} ${seed}`;
      }
      const decades = Math.max(...[...measured.activations, ...measured.gradients].map((v) => Math.abs(Math.log10(v))));
      const y = axis([3, 10, 20].find((k) => k >= decades) || 20);
      chart.axes(chart.xAxis, y);
      chart.guide(null, 1);
      [["activations", 1, "circle"], ["gradients", 2, "square"]].forEach(([kind, series, shape]) => {
        chart.curve(predicted[kind].map((v, l) => [l, v]), { series });
        chart.dots(measured[kind].map((v, l) => [l, clamp(v, y.min, y.max)]), { series, shape, radius: 2.2 });
      });
      scales.guide(factor, 1);
      [["forward", 1], ["backward", 2]].forEach(([kind, series]) => {
        scales.curve(swept().values.map((v, k) => [swept().scales[k], v[kind]]), { series });
        const crossing = swept().crossings[kind];
        if (crossing) scales.dots([[crossing, 1]], { series, shape: "ring", radius: series === 1 ? 4 : 6.5 });
      });
      SHOWN.forEach((layer, row) => {
        const heights = counts(measured.layers[layer]);
        const most = Math.max(...heights), at = (k) => -1.5 + k / 20;
        const outline = [[-1.5, 5 - row], ...heights.flatMap((n, k) => [at(k), at(k + 1)].map((x) => [x, 5 - row + (0.9 * n) / most])), [1.5, 5 - row]];
        histograms.area(outline, { series: 1 });
        histograms.curve(outline, { series: 1, width: 1 });
      });
      const [last, first] = [measured.activations[DEPTH], measured.gradients[0]];
      const kept = [last, first].every((v) => fate(v) === "keeps its size");
      fig.say(`${name === "relu" ? "ReLU" : name}, weights of standard deviation ${number(factor, 2)}/√n. `
        + `Forward, the signal ${fate(last)}: mean square ${number(last)} in layer 50. Backward, the gradient ${fate(first)}: mean square ${number(first)} at the input. ${crossings()}`,
        name === "tanh" && kept && `Task solved: with scale ${number(factor, 2)} neither mean square changes by more than a factor of 10.`);
    });
    fig.expose({ draw, measure, counts, predict, sweep, ACTIVATIONS, measured: () => measured, predicted: () => predicted });
  });
})();
