/* Means of minibatches and the running mean that follows them; one example, normalized with the
   statistics of its minibatch in training and with the running ones at inference. */
(function () {
  "use strict";
  const { number, random } = Explore;

  // --- the mathematics ---

  const STEPS = 200, LARGEST = 256; // minibatches, and examples in the largest
  const MEAN = 2, DEVIATION = 1, MOVE = 0.02; // of the population, and how far its mean moves in a step
  const PLACE = 1.5; // where the example lies: deviations above the mean of the population
  const EPS = 1e-5;
  const LAG = 0.1; // of the task
  const WORTH = 60; // examples, of the task "memory"

  /** Standard normal numbers, a row of 256 for each step: a minibatch of m takes the first m. */
  function draw(seed) {
    const { normal } = random(seed);
    return Array.from({ length: STEPS }, () => Array.from({ length: LARGEST }, normal));
  }

  /** Mean and variance of a minibatch; the variance divides by m. */
  function moments(values) {
    const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
    return { mean, variance: values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length };
  }

  /** ρ of the old average, 1 − ρ of the new value, from a start. */
  function follow(values, rho, start) {
    let average = start;
    return values.map((v) => (average = rho * average + (1 - rho) * v));
  }

  /** Everything that the figure shows. The running statistics start at 0 and 1, as in torch. */
  function simulate(drawn, { size: m, rho, moves }) {
    const truth = drawn.map((_, t) => MEAN + (moves ? MOVE * t : 0));
    const batches = drawn.map((row, t) => row.slice(0, m).map((z) => truth[t] + DEVIATION * z));
    const example = truth.map((mean) => mean + PLACE * DEVIATION);
    const found = batches.map(moments);
    const means = found.map(({ mean }) => mean);
    const running = follow(means, rho, 0);
    const spread = m > 1 ? follow(found.map(({ variance }) => (m / (m - 1)) * variance), rho, 1) : null;
    const training = batches.map((batch, t) => { // the example takes the first place in the minibatch
      const { mean, variance } = moments([example[t], ...batch.slice(1)]);
      return (example[t] - mean) / Math.sqrt(variance + EPS);
    });
    const inference = spread && spread.map((variance, t) => (example[t] - running[t]) / Math.sqrt(variance + EPS));
    return { truth, means, running, training, inference };
  }

  const rms = (values) => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0) / values.length);

  const lag = (rho) => (MOVE * rho) / (1 - rho);

  /** The numbers of the sentence; the gap is taken over the second half, after the start. */
  function summarize({ truth, means, running, training, inference }, { size: m, rho, moves }) {
    const half = STEPS / 2;
    return {
      jitter: rms(means.map((mean, t) => mean - truth[t])), predicted: DEVIATION / Math.sqrt(m),
      memory: 1 / (1 - rho), start: rho ** STEPS,
      behind: truth.at(-1) - running.at(-1), lag: moves ? lag(rho) : 0,
      gap: inference && rms(training.slice(half).map((v, t) => v - inference[half + t])),
    };
  }

  // --- the figure ---

  Explore.figure("running-mean", (fig) => {
    const points = (values) => values.map((v, t) => [t + 1, v]);
    const steps = { min: 0, max: STEPS, label: "step" };
    let seed = 1, drawn = draw(seed), shown, numbers;
    fig.slider({ id: "doublings", label: "Minibatch size m", min: 0, max: 8, step: 1, value: 3, format: (k) => String(2 ** k) });
    fig.slider({ id: "rho", label: "Weight ρ of the old average", min: 0, max: 0.99, step: 0.01, value: 0.9 });
    fig.button("Draw anew", () => { drawn = draw((seed += 1)); });
    fig.check({ id: "moves", label: "The mean of the population moves" });
    const left = fig.plot({
      title: "Means of 200 minibatches", height: 260, x: steps, y: { min: -1, max: 5, label: "mean" },
      alt: () => `Means of 200 minibatches of ${shown.m} examples against the step, and the running mean, which ends at ${number(shown.running.at(-1), 2)}.`,
    });
    const right = fig.plot({
      title: "One example, normalized", height: 260, x: steps, y: { min: -1, max: 4, label: "x̂" },
      alt: () => `The normalized value of one example in training and at inference against the step; ${shown.inference ? `the two differ by ${number(numbers.gap, 2)}` : "there is none at inference"}.`,
    });
    fig.legend([[1, "mean of a minibatch", "circle"], [2, "running mean", "line"], [5, "training: x̂ from its minibatch", "square"], [6, "inference: x̂ from running statistics", "line"]]);

    fig.draw(({ doublings, rho, moves }) => {
      const m = 2 ** doublings, settings = { size: m, rho, moves };
      shown = { m, ...simulate(drawn, settings) };
      numbers = summarize(shown, settings);
      const { truth, means, running, training, inference } = shown;
      left.axes(steps, { min: -1, max: moves ? 8 : 5, label: "mean" });
      const edge = (sign) => points(truth.map((mean) => mean + sign * numbers.predicted));
      left.area([...edge(-1), ...edge(1).reverse()], { series: 1 });
      left.dots(points(means), { series: 1, radius: 1.7 });
      left.curve(points(truth), { series: 0, width: 1, dash: "2 4" });
      left.curve(points(running), { series: 2, width: 2.5 });
      right.guide(null, PLACE);
      right.dots(points(training), { series: 5, shape: "square", radius: 1.7 });
      if (inference) right.curve(points(inference), { series: 6, width: 2.5 });
      const behind = numbers.behind, late = moves
        ? `it is ${number(Math.abs(behind), 2)} ${behind < 0 ? "ahead of" : "behind"} the mean, which moves on (predicted: ${number(numbers.lag, 2)} behind).`
        : `it ends at ${number(running.at(-1), 2)}, and the mean of the population is ${number(MEAN, 0)}.`;
      const gap = {
        1: "In a minibatch of one the example is its own mean, x̂ = 0, and no variance can be estimated for inference. The layer raises an error.",
        2: `With two examples x̂ is −1 or 1, up to ε, whatever the values are; training and inference differ by ${number(numbers.gap, 2)}.`,
      }[m] || `In training x̂ differs from x̂ at inference by ${number(numbers.gap, 2)} (root mean square, second half).`;
      const worth = (m * (1 + rho)) / (1 - rho), memory = fig.task === "memory";
      const noise = memory ? ` The running mean has the noise of the mean of ${number(worth, 0)} examples.` : "";
      fig.say(`Means of ${m === 1 ? "single examples" : `${m} examples`} deviate by ${number(numbers.jitter, 2)} (root mean square; predicted: σ/√m = ${number(numbers.predicted, 2)}). `
        + `The running mean averages over about 1/(1 − ρ) = ${number(numbers.memory, 0)} ${numbers.memory < 1.5 ? "step" : "steps"}; ${late}${noise} ${gap}`,
        memory
          ? m === 1 && Math.abs(worth - WORTH) < 6 && `Task solved: single examples, about as accurate as minibatches of ${WORTH}.`
          : moves && numbers.lag < LAG && lag(rho + 0.01) >= LAG && `Task solved: the predicted lag is ${number(numbers.lag, 3)}.`);
    });
    fig.expose({ draw, simulate, summarize, shown: () => shown, numbers: () => numbers });
  });
})();
