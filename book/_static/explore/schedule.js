/* SGD on a noisy loss in two coordinates, ½x² + 0.075x⁴ along the steep one and ½·0.03y² along the flat one:
   the schedule of the learning rate, and the loss that it causes, one run and the mean of 200. */
(function () {
  "use strict";
  const { number, random } = Explore;
  const STEPS = 300, RUNS = 200, START = [4, 3], NOISE = 0.3, FAR = 100;
  const CUBIC = 0.3, FLAT = 0.03; // the curvature along x is 1 + 3·CUBIC·x²: 15.4 at the start, 1 at the minimum
  const GOAL = 0.009;
  const LAST = STEPS / 5; // the steps in which "stable, then linear" falls

  // --- the mathematics ---

  const noise = Float64Array.from({ length: 2 * RUNS * STEPS }, random(1).normal);
  const value = ([x, y]) => (x * x + FLAT * y * y) / 2 + (CUBIC / 4) * x ** 4;

  /** What is left of the learning rate when a part s of the steps after the warm-up is over, k steps in all. */
  const FALLS = {
    constant: () => 1,
    cosine: (s) => (1 + Math.cos(Math.PI * s)) / 2,
    linear: (s) => 1 - s,
    stable: (s, k) => Math.min(1, (STEPS - k) / LAST),
  };

  /** The learning rate of step k: a rise in w equal increments, then constant or a fall to zero. */
  function rate(k, { lr, warmup, fall }) {
    if (k < warmup) return (lr * (k + 1)) / warmup;
    return lr * FALLS[fall]((k - warmup) / (STEPS - warmup), k);
  }

  /** The iterates of one run, up to the first that is far away. */
  function iterate(run, settings, sigma = NOISE) {
    const path = [START];
    for (let k = 0; k < STEPS; k += 1) {
      const [x, y] = path[k], lr = rate(k, settings), at = 2 * (run * STEPS + k);
      if (Math.abs(x) > FAR) break;
      path.push([x - lr * (x + CUBIC * x ** 3 + sigma * noise[at]), y - lr * (FLAT * y + sigma * noise[at + 1])]);
    }
    return path;
  }

  /** The loss of one run by step, the mean loss of all, and the step at which a run diverged, if one did. */
  function train(settings) {
    const mean = new Float64Array(STEPS + 1);
    let single, diverged;
    for (let run = 0; run < RUNS && !diverged; run += 1) {
      const losses = iterate(run, settings).map(value);
      if (losses.length <= STEPS) diverged = losses.length - 1;
      losses.forEach((v, k) => { mean[k] += v / RUNS; });
      single = single || losses;
    }
    return { single, mean: Array.from(mean), diverged, end: diverged ? Infinity : mean[STEPS] };
  }

  // --- the figure ---

  Explore.figure("schedule", (fig) => {
    const { state } = fig;
    fig.slider({ id: "lr", label: "Largest learning rate η", min: 0.02, max: 2, value: 0.2, log: true });
    fig.slider({ id: "warmup", label: "Steps of warm-up", min: 0, max: 150, step: 1, value: 0, format: String });
    fig.choice({ id: "fall", label: "After the warm-up", value: "constant", options: [["constant", "constant"], ["cosine", "cosine to zero"], ["linear", "linear to zero"], ["stable", "stable, then linear"]] });
    const steps = { min: 0, max: STEPS, label: "step" };
    const plan = fig.plot({
      title: "Learning rate", height: 240, x: steps, y: { min: 0, max: 2, label: "η" },
      alt: () => `The learning rate by step: ${state.warmup ? `a rise to ${number(state.lr, 2)} in ${state.warmup} steps, then ` : ""}${state.fall}.`,
    });
    const chart = fig.plot({
      title: "Loss", height: 240, x: steps, y: { min: 1e-3, max: 100, log: true, label: "loss" },
      alt: () => (train(state).diverged ? "A loss curve that leaves the picture at the top." : `Loss by step, which ends at ${number(train(state).end)}.`),
    });
    fig.legend([[1, "one run"], [2, `mean of ${RUNS} runs`]]);

    fig.draw(() => {
      const { single, mean, diverged, end } = train(state);
      const inside = (losses) => losses.map((v, k) => [k, Math.min(Math.max(v, 1e-3), 100)]);
      plan.axes(steps, { min: 0, max: 1.1 * state.lr });
      plan.curve(Array.from({ length: STEPS }, (_, k) => [k, rate(k, state)]), { series: 2 });
      chart.curve(inside(single), { series: 1, width: 1 });
      if (!diverged) chart.curve(inside(mean), { series: 2 });
      if (diverged) {
        const what = state.warmup ? "the warm-up is too short for this learning rate" : "this learning rate overshoots there";
        const near = state.lr < 1 ? "although it is small enough near the minimum" : "and it may be too large near the minimum, too";
        return fig.say(`A run diverges at step ${diverged}. At the start the loss is steep along x: ${what}, ${near}.`);
      }
      fig.say(
        `The mean loss after ${STEPS} steps is ${number(end, 4)}. Without noise it would be ${number(value(iterate(0, state, 0).at(-1)), 4)}, for the distance that is not yet covered; the last learning rates let in the rest.`,
        end <= GOAL && "Task solved: a large rate for the flat direction, a warm-up for the steep start, and a fall to zero against the noise.",
      );
    });
    fig.expose({ train: () => train(state), path: (run) => iterate(run, state), rates: () => Array.from({ length: STEPS }, (_, k) => rate(k, state)) });
  });
})();
