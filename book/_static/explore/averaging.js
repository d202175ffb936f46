/* SGD on J(θ) = ½θ² with noisy gradients θ + ξ, ξ of variance 1/n: the iterates of a constant rate,
   the average of the later half of them, and the iterates of a rate that falls like 1/k. */
(function () {
  "use strict";
  const { number, random } = Explore;
  const STEPS = 1000, RUNS = 200, START = 5;
  const TAU = 20; // steps until the falling rate is half of the first one
  const GOAL = 0.004;

  // --- the mathematics ---

  /** The noise of minibatches of one, run by run. */
  const draw = (seed) => Float64Array.from({ length: RUNS * STEPS }, random(seed).normal);

  /** The iterates of one run, θ(0) first. */
  function iterate(rate, noise, run, n) {
    const path = new Float64Array(STEPS + 1).fill(START);
    for (let k = 0; k < STEPS; k += 1) path[k + 1] = path[k] - rate(k) * (path[k] + noise[run * STEPS + k] / Math.sqrt(n));
    return path;
  }

  /** At each step k the mean of the iterates after step k/2. */
  function average(path) {
    const sums = new Float64Array(STEPS + 1);
    for (let k = 1; k <= STEPS; k += 1) sums[k] = sums[k - 1] + path[k];
    return path.map((v, k) => (k ? (sums[k] - sums[k >> 1]) / (k - (k >> 1)) : v));
  }

  /** The three paths of a run. */
  function paths(noise, run, { lr, n }) {
    const constant = iterate(() => lr, noise, run, n);
    return { constant, average: average(constant), falling: iterate((k) => lr / (1 + k / TAU), noise, run, n) };
  }

  /** The mean squared errors of all runs at each step. */
  function errors(noise, settings) {
    const sums = { constant: new Float64Array(STEPS + 1), average: new Float64Array(STEPS + 1), falling: new Float64Array(STEPS + 1) };
    for (let run = 0; run < RUNS; run += 1) {
      const found = paths(noise, run, settings);
      for (const name in sums) for (let k = 0; k <= STEPS; k += 1) sums[name][k] += found[name][k] ** 2 / RUNS;
    }
    return sums;
  }

  const floor = ({ lr, n }) => lr / (n * (2 - lr));
  const limit = ({ n }, k) => 2 / (n * k); // of the average of k/2 iterates, once the start is forgotten

  // --- the figure ---

  Explore.figure("averaging", (fig) => {
    const { state } = fig;
    let seed = 1, noise = draw(seed), found;
    fig.slider({ id: "lr", label: "Learning rate η", min: 0.002, max: 1.95, value: 0.5, log: true, format: (v) => number(v, v < 0.1 ? 4 : 2) });
    fig.slider({ id: "n", label: "Examples in a minibatch n", min: 1, max: 64, step: 1, value: 1, format: String });
    fig.button("Draw anew", () => { noise = draw((seed += 1)); });
    const steps = { min: 1, max: STEPS, log: true, label: "step k" };
    const left = fig.plot({
      title: "One run", height: 270, x: steps, y: { min: -3, max: 6, label: "θ" },
      alt: () => `θ against the step in one run: the iterates of the constant rate, their average, and the iterates of the falling rate, which end at ${number(paths(noise, 0, state).falling[STEPS], 2)}.`,
    });
    const right = fig.plot({
      title: `Mean squared error of ${RUNS} runs`, height: 270, x: steps, y: { min: 1e-5, max: 100, log: true },
      alt: () => `Mean squared error against the step, both logarithmic: at step ${STEPS} it is ${number(found.constant[STEPS], 5)} with the constant rate, ${number(found.average[STEPS], 5)} for the average and ${number(found.falling[STEPS], 5)} with the falling rate.`,
    });
    fig.legend([[1, "constant rate"], [3, "average of its later half"], [2, "rate falling like 1/k", "dashed"]]);

    fig.draw(() => {
      const one = paths(noise, 0, state), shown = [...new Set(Array.from({ length: 181 }, (_, i) => Math.round(STEPS ** (i / 180))))];
      found = errors(noise, state);
      const styles = { constant: { series: 1, width: 1 }, falling: { series: 2, dash: true, width: 1.5 }, average: { series: 3, width: 2.5 } };
      left.guide(null, 0);
      for (const name in styles) {
        left.curve(Array.from(one[name], (v, k) => [Math.max(k, 0.5), v]), styles[name]);
        right.curve(shown.map((k) => [k, found[name][k]]), styles[name]);
      }
      right.guide(null, floor(state));
      right.text([1, floor(state)], "floor", { dx: 3, dy: -4 });
      const [constant, averaged, falling] = ["constant", "average", "falling"].map((name) => found[name][STEPS]);
      const early = constant > 1.5 * floor(state) ? "the start is not forgotten yet; " : "";
      const task = state.n === 1 && constant < GOAL && `Task solved: the constant rate is below ${GOAL}.`;
      const shows = (v) => number(v, 4);
      fig.say(`Mean squared error at step ${STEPS}: ${shows(constant)} with the constant rate (${early}floor ${shows(floor(state))}), `
        + `${shows(averaged)} for the average of the last ${STEPS / 2} iterates (2/(nk) = ${shows(limit(state, STEPS))}), ${shows(falling)} with the falling rate.`, task);
    });
    fig.expose({ errors: () => Object.fromEntries(Object.entries(found).map(([name, values]) => [name, Array.from(values)])), path: () => Array.from(paths(noise, 0, state).constant), floor: () => floor(state) });
  });
})();
