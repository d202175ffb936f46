/* A minibatch of two beside one of sixty-four: the line along which a layer maps its inputs in
   training, by the statistics of the minibatch, and the one line at inference. One example is moved. */
(function () {
  "use strict";
  const { number, random } = Explore;

  // --- the mathematics ---

  const MEAN = 3, DEVIATION = 2; // of the population
  const SIZES = [2, 64], DRAWS = 40; // minibatches that are drawn of each size; the first is marked
  const EPS = 1e-5;

  /** The other examples of the minibatches: for each draw 63 values, of which a minibatch of m takes m − 1. */
  function draw(seed) {
    const { normal } = random(seed);
    return Array.from({ length: DRAWS }, () => Array.from({ length: SIZES[1] - 1 }, () => MEAN + DEVIATION * normal()));
  }

  /** Mean and deviation by which a layer normalizes in training; the moved example has a place in the minibatch. */
  function training(x, others) {
    const values = [x, ...others], mean = values.reduce((sum, v) => sum + v, 0) / values.length;
    const variance = values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length;
    return { mean, deviation: Math.sqrt(variance + EPS) };
  }

  const inference = { mean: MEAN, deviation: Math.sqrt(DEVIATION ** 2 + EPS) };
  const output = ({ mean, deviation }, v) => (v - mean) / deviation;

  /** Of each size: the statistics of all minibatches, the outputs of the moved example, and how far these are from inference. */
  function simulate(x, drawn) {
    return SIZES.map((m) => {
      const statistics = drawn.map((others) => training(x, others.slice(0, m - 1)));
      const outputs = statistics.map((s) => output(s, x)), there = output(inference, x);
      return { m, statistics, outputs, gap: Math.sqrt(outputs.reduce((sum, y) => sum + (y - there) ** 2, 0) / DRAWS) };
    });
  }

  // --- the figure ---

  Explore.figure("batch-of-two", (fig) => {
    const { state } = fig;
    const X = { min: -5, max: 11, label: "input" }, Y = { min: -4, max: 4, label: "output" };
    let seed = 1, drawn = draw(seed), shown;
    state.x = 3.6;
    fig.button("Draw other examples", () => { drawn = draw((seed += 1)); });
    const plots = SIZES.map((m, k) => {
      const plot = fig.plot({
        title: `A minibatch of ${m}: drag the example`, height: 300, x: X, y: Y,
        alt: () => `Output against input. The line of a minibatch of ${m} in training and the line at inference; at the moved example, x = ${number(state.x, 2)}, their outputs are ${number(shown[k].outputs[0], 2)} and ${number(output(inference, state.x), 2)}.`,
      });
      plot.handle({
        label: `Example in the minibatch of ${m}`, move: "x", series: 2, pick: true, step: [0.05, 1], get: () => [state.x, shown ? shown[k].outputs[0] : 0],
        set: (x) => { state.x = x; }, describe: (x) => `input ${number(x, 2)}, output in training ${number(shown[k].outputs[0], 2)}, at inference ${number(output(inference, x), 2)}`,
      });
      return plot;
    });
    fig.legend([[1, "training, this minibatch"], [1, "other examples", "circle"], [2, "moved example, training", "circle"], [3, "inference", "dashed"], [3, "moved example, inference", "square"], [0, "training, 39 other minibatches"]]);

    /** The part of a line that lies within the plot. */
    const line = (s) => [[X.min, Y.min, Math.max], [X.max, Y.max, Math.min]].map(([v, y, inner]) => inner(v, s.mean + y * s.deviation)).map((v) => [v, output(s, v)]);

    fig.draw(({ x }) => {
      shown = simulate(x, drawn);
      const there = output(inference, x);
      plots.forEach((plot, k) => {
        const { m, statistics: [marked, ...rest], outputs: [y] } = shown[k];
        for (const s of rest) plot.curve(line(s), { width: 0.7, faint: true });
        plot.curve(line(marked), { series: 1, width: 2.5 });
        plot.curve(line(inference), { series: 3, width: 2.5, dash: true });
        plot.dots(drawn[0].slice(0, m - 1).map((v) => [v, output(marked, v)]), { series: 1, radius: k ? 2.5 : 4.5 });
        plot.curve([[x, y], [x, there]], { series: 2, width: 1.5 });
        plot.dots([[x, there]], { series: 3, shape: "square", radius: 4.5 });
      });
      const [two, many] = shown;
      fig.say(`The output is ${number(there, 2)} at inference. In training it is ${number(two.outputs[0], 2)} in the minibatch of two and ${number(many.outputs[0], 2)} among 64. `
        + `Over ${DRAWS} minibatches training differs from inference by ${number(two.gap, 2)} and by ${number(many.gap, 2)} (root mean square).`,
      Math.abs(two.outputs[0] - there) < 0.02 && "Task solved: the minibatch of two gives the output of inference.");
    });
    fig.expose({ draw, simulate, shown: () => shown });
  });
})();
