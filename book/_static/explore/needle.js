/* Forty points and a line through the origin with one parameter, its direction φ: the number of errors is a
   staircase without a slope, with its minimum on a needle; the logistic risk can be descended. */
(function () {
  "use strict";
  const { number, times } = Explore;
  const PLUS = [
    [1.24294, 2.30142], [0.23554, -0.57906], [0.76499, 1.82435], [1.15358, 1.71576], [1.08792, 1.49970], [3.37489, 0.77393], [0.82125, 0.39474],
    [0.11493, 2.26678], [1.35435, 0.91639], [0.72345, -0.18972], [2.12923, -0.33609], [0.56532, -0.20289], [0.32211, -0.32116], [-0.57008, 0.23703],
  ];
  const MINUS = [
    [-1.56329, 0.46927], [-2.87253, 0.62852], [0.03487, -1.91867], [-1.28038, -1.27105], [-0.35194, -0.69673], [-0.35013, -1.56634], [-2.52988, -2.93388],
    [0.19867, -0.42621], [0.51012, -0.50896], [-1.74216, -0.02207], [-1.07659, -1.75419], [-0.10834, -0.60463], [-1.75911, -0.63413], [-1.90561, -0.30995],
    [0.42854, -1.16762], [-0.84659, -1.33639], [-1.22224, -0.45260], [-0.59884, 0.40840], [-0.35290, 1.95734], [-0.68132, -0.95633], [0.87163, -1.54722],
    [-0.03152, -1.45514], [-0.64589, -2.46840], [-0.10073, -0.65825], [-1.96768, 1.17842], [-0.23465, -0.45419],
  ];
  const POINTS = [...PLUS.map((x) => [x, 1]), ...MINUS.map((x) => [x, -1])]; // of optdl.problems.TwoGaussians
  const SCALE = 2; // the length of the weight vector
  const LR = 0.5; // of a step on the logistic risk, in radians
  const TARGET = 4;

  // --- the mathematics; φ in degrees ---

  const weights = (phi) => [SCALE * Math.cos((phi * Math.PI) / 180), SCALE * Math.sin((phi * Math.PI) / 180)];
  const score = (w, x) => w[0] * x[0] + w[1] * x[1];
  const mean = (f) => POINTS.reduce((sum, [x, y]) => sum + f(x, y), 0) / POINTS.length;
  const errors = (phi) => POINTS.filter(([x, y]) => y * score(weights(phi), x) <= 0).length;
  const logistic = (phi) => mean((x, y) => Math.log2(1 + Math.exp(-y * score(weights(phi), x)))); // in bits

  /** The derivative of the logistic risk with respect to φ in radians. */
  const slope = (phi) => mean((x, y) => (-y * score(weights(phi + 90), x)) / (1 + Math.exp(y * score(weights(phi), x))) / Math.LN2);

  const wrap = (phi) => ((((phi + 180) % 360) + 360) % 360) - 180;
  const descend = (phi) => wrap(phi - (LR * slope(phi) * 180) / Math.PI);

  /** The middle and the width of the interval between two jumps that has the fewest errors. */
  function needle() {
    const jumps = POINTS.flatMap(([[a, b]]) => [-90, 90].map((turn) => wrap((Math.atan2(b, a) * 180) / Math.PI + turn))).sort((a, b) => a - b);
    const gaps = jumps.map((start, k) => ({ start, width: (k + 1 < jumps.length ? jumps[k + 1] : jumps[0] + 360) - start }));
    const middle = ({ start, width }) => start + width / 2;
    const best = gaps.reduce((a, b) => (errors(middle(b)) < errors(middle(a)) ? b : a));
    return [middle(best), best.width];
  }
  const [NEEDLE, WIDTH] = needle();
  const GRID = Array.from({ length: 721 }, (_, k) => k / 2 - 180);
  const STAIRS = GRID.map((phi) => [phi, errors(phi) / POINTS.length]);

  // --- the figure ---

  Explore.figure("needle", (fig) => {
    const { state } = fig;
    fig.slider({ id: "phi", label: "Direction φ", min: -180, max: 180, step: 0.5, value: -150, format: (v) => `${number(v, Number.isInteger(2 * v) ? 1 : 3)}°` });
    fig.button("One step down the logistic risk", () => fig.assign({ phi: descend(state.phi) }));
    fig.button("Go to the needle", () => fig.assign({ phi: NEEDLE }));
    const plane = fig.plot({
      title: "The line and its side of +1: drag the arrow", height: 330, bare: true, x: { min: -3.5, max: 3.5 }, y: { min: -3.5, max: 3.5 },
      alt: () => `Forty points of two classes and a line through the origin, whose arrow points at ${number(state.phi, 1)} degrees; it makes ${times(errors(state.phi), "error")}.`,
    });
    plane.handle({
      label: "Arrow of the line", pick: true, step: [0.02, 0.02], get: () => weights(state.phi),
      set: (x, y) => fig.assign({ phi: Number(((Math.atan2(y, x) * 180) / Math.PI).toFixed(1)) }), describe: () => `${number(state.phi, 1)} degrees`,
    });
    const chart = fig.plot({
      title: "Two empirical risks", height: 330, x: { min: -180, max: 180, ticks: [-180, -90, 0, 90, 180], label: "direction φ in degrees" }, y: { min: 0, max: 3.6 },
      alt: () => `The 0–1 risk, a low staircase, and the logistic risk, a smooth curve with one valley, against the direction; the line is at ${number(state.phi, 1)} degrees.`,
    });
    fig.legend([[1, "label +1", "circle"], [2, "label −1", "square"], [0, "wrong", "ring"], [1, "0–1 risk"], [2, "logistic risk, in bits", "dashed"]]);

    fig.draw(({ phi }) => {
      const w = weights(phi), [a, b] = weights(phi + 90), wrong = errors(phi), steep = slope(phi);
      plane.area([[-3 * a, -3 * b], [3 * a, 3 * b], [3 * (a + w[0]), 3 * (b + w[1])], [3 * (w[0] - a), 3 * (w[1] - b)]], { series: 1 });
      plane.curve([[-3 * a, -3 * b], [3 * a, 3 * b]], { width: 2 });
      plane.curve([[0, 0], w], { width: 3 });
      plane.dots(PLUS, { series: 1, radius: 4 });
      plane.dots(MINUS, { series: 2, radius: 4, shape: "square" });
      plane.dots(POINTS.filter(([x, y]) => y * score(w, x) <= 0).map(([x]) => x), { radius: 8, shape: "ring" });
      chart.curve(STAIRS, { series: 1 });
      chart.curve(logistic, { series: 2, dash: true });
      chart.guide(phi);
      chart.dots([[phi, wrong / POINTS.length]], { series: 1, radius: 5 });
      chart.dots([[phi, logistic(phi)]], { series: 2, radius: 5, shape: "square" });
      const way = Math.abs(steep) < 0.005 ? "At this direction the logistic risk has a slope of nearly 0, too." : `The logistic risk is ${number(logistic(phi), 2)} and falls toward ${steep > 0 ? "smaller" : "larger"} φ.`;
      const few = wrong < TARGET && `This is the needle, ${number(WIDTH, 4)}° wide.`;
      fig.say(`The line makes ${times(wrong, "error")} of ${POINTS.length}. The 0–1 risk has slope 0 here and does not say where to go. ${few || way}`, wrong <= TARGET && `Task solved: ${times(wrong, "error")}.`);
    });
    fig.expose({ errors, logistic, slope, needle });
  });
})();
