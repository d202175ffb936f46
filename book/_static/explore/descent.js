/* The long valley J = ½(x²/20 + y²): gradient descent from a start that the reader drags, with a
   learning rate and a momentum, and the number of steps until it stays at the minimum. */
(function () {
  "use strict";
  const { number, times, descend } = Explore;
  const FLAT = 0.05; // curvature along the valley; across it is 1
  const CLOSE = 0.1; // the distance at which the minimum counts as reached
  const FAR_LEFT = -2; // a start beyond this line counts for the task
  const TARGET = 12;
  const PATIENCE = 300;

  // --- the mathematics ---

  const run = (start, lr, momentum) => descend(([x, y]) => [FLAT * x, y], start, lr, PATIENCE, { momentum });

  /** The steps after which all iterates are close to the minimum; Infinity where the last is not. */
  function arrival(path) {
    const outside = path.findLastIndex(([x, y]) => !(Math.hypot(x, y) <= CLOSE));
    return outside === path.length - 1 ? Infinity : outside + 1;
  }

  const circle = (r) => Array.from({ length: 91 }, (_, k) => [r * Math.cos((k * Math.PI) / 45), r * Math.sin((k * Math.PI) / 45)]);

  function describe(lr, momentum, steps, plain) {
    if (lr === 0) return "The learning rate is zero, so the iteration stays at its start.";
    const limit = 2 * (1 + momentum);
    if (steps === Infinity && lr > limit) return `The iteration diverges: it overshoots the floor of the valley by more in each step. The learning rate has to be below ${number(limit, 2)} here.`;
    if (steps === Infinity) return `After ${PATIENCE} steps the iteration has not settled at the minimum.`;
    const all = `The iteration reaches the minimum in ${times(steps, "step")}.`;
    if (momentum > 0) return `${all} Without momentum, ${plain === Infinity ? "it does not get there at this learning rate" : `it needs ${plain}`} (dashed).`;
    const why = lr > 1 ? "A larger rate would be faster along the valley, but across it each step already overshoots." : "The step that is safe across the valley is short along it.";
    return `${all} Each step multiplies the distance along the valley by ${number(1 - FLAT * lr, 2)} and the distance across it by ${number(1 - lr, 2)}. ${why}`;
  }

  // --- the figure ---

  Explore.figure("descent", (fig) => {
    const { state } = fig;
    Object.assign(state, { start: [-2.6, 0.75] });
    fig.slider({ id: "lr", label: "Learning rate", min: 0, max: 3, step: 0.05, value: 1.8 });
    fig.slider({ id: "momentum", label: "Momentum", min: 0, max: 0.98, step: 0.02, value: 0 });
    const path = () => run(state.start, state.lr, state.momentum);
    let shown = Infinity; // steps of the path that are drawn: it grows once, when the page opens
    const valley = fig.plot({
      width: 560, height: 224, bare: true, x: { min: -3.1, max: 1.5 }, y: { min: -0.9, max: 0.9 },
      alt: () => `Level curves of a long valley, and the path of gradient descent from (${state.start.map((v) => number(v, 2)).join(", ")}) towards the minimum.`,
    });
    valley.node.classList.add("ex-wide");
    valley.handle({
      label: "Start of gradient descent", pick: true, series: 1, step: [0.05, 0.05], get: () => state.start,
      set: (x, y) => { state.start = [x, y]; shown = Infinity; },
      describe: (x, y) => `${number(x, 2)} along the valley, ${number(y, 2)} across it`,
    });

    fig.draw(({ start, lr, momentum }, id) => {
      if (id) shown = Infinity;
      const all = path(), plain = run(start, lr, 0);
      const steps = arrival(all);
      for (let k = 1; k <= 11; k += 1) valley.curve(circle(0.13 * k).map(([x, y]) => [x / Math.sqrt(FLAT), y]), { class: "ex-level" });
      valley.guide(FAR_LEFT);
      valley.text([FAR_LEFT, -0.9], "start here", { anchor: "end", dx: -6, dy: -8 });
      valley.text([0, 0], "minimum", { anchor: "middle", dy: 32 });
      valley.curve(circle(CLOSE), { series: 3, width: 2.5 });
      if (momentum > 0 && arrival(plain) < Infinity) valley.curve(plain.slice(0, 80), { series: 2, width: 1.5, dash: true });
      valley.curve(all.slice(0, shown + 1), { series: 1, width: 2 });
      valley.dots(all.slice(1, Math.min(shown, steps) + 1), { series: 1, radius: 3.5 });
      valley.text([1.5, 0.9], steps === Infinity ? "∞" : times(steps, "step"), { series: 1, bold: true, anchor: "end", dx: -8, dy: 20 });
      const reached = steps <= TARGET && start[0] <= FAR_LEFT;
      fig.say(describe(lr, momentum, steps, arrival(plain)), reached && `Task solved: at most ${TARGET} steps.`);
    });
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
      shown = 0;
      const timer = setInterval(() => {
        shown += 1;
        if (shown > 40) { clearInterval(timer); shown = Infinity; }
        fig.change();
      }, 80);
    }
    fig.expose({ path, steps: () => arrival(path()) });
  });
})();
