/* A surface with three wells: from each start, colored, the minimum in which gradient descent ends. */
(function () {
  "use strict";
  const { number, descend } = Explore;
  const WELLS = [{ at: [-1.5, 0], depth: 1, width: 0.8 }, { at: [1.2, 1], depth: 1.4, width: 0.7 }, { at: [1, -1.6], depth: 0.8, width: 0.6 }];
  const NAMES = ["left", "upper", "lower"];
  const STEPS = 400;
  const GRID = 44;
  const X = { min: -3.4, max: 2.8, label: "x" }, Y = { min: -2.7, max: 2.1, label: "y" };

  // --- the mathematics ---

  const wells = ([x, y]) => WELLS.map(({ at, depth, width }) => depth * Math.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * width ** 2)));
  const value = (p) => -wells(p).reduce((a, b) => a + b, 0);
  const gradient = (p) => wells(p).reduce((g, v, j) => g.map((s, i) => s + (v * (p[i] - WELLS[j].at[i])) / WELLS[j].width ** 2), [0, 0]);
  const distance = (p, q) => Math.hypot(p[0] - q[0], p[1] - q[1]);
  const nearest = (p) => MINIMA.map((m) => distance(p, m)).reduce((best, d, j, all) => (d < all[best] ? j : best), 0);
  const MINIMA = WELLS.map(({ at }) => descend(gradient, at, 0.2, 2000).at(-1));

  /** The learning rate 2/λmax above which gradient descent leaves a minimum, by differences of gradients. */
  function limit(p) {
    const [a, b] = [[1e-5, 0], [0, 1e-5]].map((e) => gradient(p.map((v, i) => v + e[i])).map((g, i) => (g - gradient(p.map((v, k) => v - e[k]))[i]) / 2e-5));
    return 2 / ((a[0] + b[1]) / 2 + Math.hypot((a[0] - b[1]) / 2, a[1]));
  }

  /** The number of the minimum in which a path has ended, or −1. */
  function basin(path) {
    const end = path.at(-1), j = nearest(end);
    return distance(end, MINIMA[j]) < 0.01 ? j : -1;
  }

  // --- the figure ---

  Explore.figure("basins", (fig) => {
    const { state } = fig;
    let map = [], mapped;
    Object.assign(state, { start: [-0.5, 1.6] });
    fig.slider({ id: "lr", label: "Learning rate η", min: 0.05, max: 1, step: 0.05, value: 0.2 });
    fig.check({ id: "color", label: "Color each start by its minimum", value: false });
    const path = () => descend(gradient, state.start, state.lr, STEPS);
    const center = (k, axis) => axis.min + ((k + 0.5) / GRID) * (axis.max - axis.min);
    const plane = fig.plot({
      height: 366, width: 460, x: X, y: Y,
      alt: () => `Level curves of a surface with three wells, and gradient descent from (${state.start.map((v) => number(v, 2)).join(", ")}).`,
    });
    plane.handle({
      label: "Start of gradient descent", pick: true, step: [0.05, 0.05], get: () => state.start,
      set: (x, y) => { state.start = [x, y]; }, describe: (x, y) => `x ${number(x, 2)}, y ${number(y, 2)}`,
    });
    fig.legend(NAMES.map((name, j) => [j + 1, `${name}, J = ${number(value(MINIMA[j]), 2)}`, ["circle", "square", "diamond"][j]]));

    fig.draw(({ start, lr, color }) => {
      if (color && mapped !== lr) {
        map = Array.from({ length: GRID * GRID }, (_, k) => basin(descend(gradient, [center(k % GRID, X), center(Math.floor(k / GRID), Y)], lr, STEPS)));
        mapped = lr;
      }
      const cell = (v, axis) => Explore.clamp(Math.floor((GRID * (v - axis.min)) / (axis.max - axis.min)), 0, GRID - 1);
      if (color) NAMES.forEach((_, j) => plane.heat((x, y) => (map[cell(y, Y) * GRID + cell(x, X)] === j ? 0.35 : 0), { series: j + 1, n: GRID }));
      plane.contours((x, y) => value([x, y]), Array.from({ length: 14 }, (_, k) => -0.1 * (k + 0.3)));
      MINIMA.forEach((m, j) => plane.dots([m], { series: j + 1, radius: 6, shape: ["circle", "square", "diamond"][j] }));
      const all = path(), end = basin(all), near = nearest(start);
      plane.curve(all, { width: 1.5 });
      plane.dots(all.slice(1, 60), { radius: 2.2 });
      if (end < 0) {
        const last = nearest(all.at(-1)), most = limit(MINIMA[last]);
        const why = lr > 0.95 * most ? `η = ${number(lr, 2)} is only just below 2/λmax in the ${NAMES[last]} minimum` : "the surface is nearly flat at this start";
        return fig.say(lr > most ? `The iteration cannot settle in the ${NAMES[last]} minimum: η = ${number(lr, 2)} is above 2/λmax = ${number(most, 2)} there.` : `After ${STEPS} steps the iteration is still on its way: ${why}.`);
      }
      const where = end === near ? "which is the nearest" : `although the ${NAMES[near]} minimum is nearer`;
      fig.say(`With η = ${number(lr, 2)}, descent from here ends in the ${NAMES[end]} minimum, ${where}.`, end !== near && `Task solved: it does not end in the nearest minimum${near === 1 ? ", although this is the deepest" : ""}.`);
    });
    fig.expose({ path, limit, minima: () => MINIMA, basin: (start, lr) => basin(descend(gradient, start, lr, STEPS)) });
  });
})();
