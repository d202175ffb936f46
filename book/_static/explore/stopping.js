/* Early stopping on a recorded run: 300 epochs on 500 digits, of which 100 have a wrong label. The patience decides
   where training would have halted, and which epoch it would have returned to. */
(function () {
  "use strict";
  const { number, times } = Explore;
  const IMAGES = 500; // to train on, and as many others to validate
  // The counts of wrong answers and the norm of the gradient, by epoch: experiments/recorded.py erm-without-halt
  const numbers = (text) => text.trim().split(/\s+/).map(Number);
  const VALIDATION = numbers(`
    287 158 88 83 109 86 82 64 56 61 56 52 71 49 50 48 46 46 48 41 42 51 48 41 54 53 36 45 48 47 45 37 41 43 37 48 49 82 51 52 42 49 46 45 48 46 47 76 67
    45 45 46 48 48 51 60 48 47 44 52 46 45 52 55 45 46 54 49 48 47 58 44 45 55 49 53 45 46 45 50 52 47 51 51 47 54 56 50 52 48 43 52 51 48 49 47 53 56 53
    52 50 48 50 61 55 51 51 51 54 48 56 72 62 62 52 55 72 51 58 72 54 57 57 60 59 67 59 49 61 56 59 65 54 67 66 58 54 52 58 63 63 61 55 55 55 61 51 99 69
    66 59 63 69 62 72 61 57 69 59 62 56 71 81 58 61 83 78 66 74 83 72 72 78 63 67 63 58 72 68 68 63 62 68 64 70 69 73 73 73 79 75 76 64 76 71 70 68 82 72
    77 76 63 64 73 71 74 78 76 72 82 80 77 70 75 71 71 70 76 76 72 80 73 71 123 77 98 73 75 83 76 78 83 75 74 73 70 75 87 84 81 80 83 85 76 72 75 72 79 70
    77 74 76 81 83 91 75 81 79 76 73 82 77 77 77 86 73 73 82 88 80 81 88 87 68 79 81 78 75 80 81 83 92 95 87 82 87 87 80 82 78 75 80 85 79 85 82 76 86 80
    77`);
  const TRAINING = numbers(`
    309 225 164 164 168 154 157 132 133 134 129 125 142 126 125 115 118 122 121 121 115 118 116 115 121 125 116 119 116 118 117 116 111 119 112 112 111
    145 114 116 106 107 107 106 108 107 106 130 128 111 115 109 102 111 112 109 107 108 100 111 108 101 106 111 101 106 108 104 102 106 109 102 99 98 106
    97 101 105 99 98 100 99 107 100 99 101 95 96 106 94 102 101 92 97 95 97 95 99 95 95 96 91 91 94 95 91 92 95 92 89 93 111 93 95 92 88 97 95 88 103 83
    87 89 86 90 85 92 86 90 85 90 85 84 97 77 85 84 77 79 77 89 75 77 77 77 73 76 100 73 81 68 79 79 69 67 71 64 64 71 65 74 69 82 69 69 70 66 57 61 73 60
    70 59 61 54 58 56 61 55 52 61 60 62 55 51 50 49 43 44 52 59 50 47 59 46 45 46 59 39 47 60 44 45 37 32 38 47 40 34 56 41 36 31 35 33 31 28 38 39 28 40
    25 25 52 36 45 24 20 25 33 29 29 21 20 25 27 19 28 18 31 37 31 31 17 18 17 17 21 14 16 12 19 16 22 29 19 19 19 10 17 18 13 18 21 18 11 11 13 13 10 13
    22 18 11 9 7 12 19 11 14 10 9 27 11 8 9 10 9 10 6 16 8 10 7 6 8 8 5 7 4`);
  const NORM = numbers(`
    .32 .34 .36 .39 .35 .38 .58 .40 .29 .30 .35 .33 .60 .35 .28 .22 .22 .42 .37 .41 .43 .50 .27 .23 .49 .51 .33 .45 .41 .32 .44 .30 .27 .42 .33 .48 .34
    1.29 .46 .45 .33 .53 .21 .27 .27 .27 .26 .91 .74 .45 .31 .32 .32 .25 .31 .55 .21 .25 .33 .47 .29 .25 .47 .43 .24 .46 .57 .50 .32 .31 .83 .26 .24 .49
    .54 .27 .31 .40 .24 .31 .29 .35 .64 .22 .41 .19 .42 .41 .51 .20 .32 .46 .43 .36 .40 .36 .32 .50 .35 .36 .30 .40 .43 .56 .48 .26 .24 .31 .52 .34 .60
    .97 .56 .61 .48 .30 .84 .63 .43 .81 .33 .49 .27 .50 .55 .75 .42 .44 .68 .54 .65 .55 .33 .95 .50 .43 .54 .37 .24 .43 .67 .52 .33 .23 .39 .41 .42 1.40
    .50 .53 .49 .48 .75 .20 .64 .52 .39 .48 .45 .45 .50 .51 .96 .59 .29 .94 .60 .60 .53 .86 .35 .44 .45 .35 .31 .30 .34 .70 .50 .31 .24 .39 .83 .35 .49
    .42 .40 .34 .28 .63 .71 .56 .32 .75 .43 .43 .30 .93 .43 .44 .88 .34 .43 .50 .19 .32 .58 .40 .31 .94 .48 .47 .32 .32 .24 .39 .37 .45 .52 .36 .87 .33
    .31 1.05 .61 .86 .20 .27 .37 .54 .43 .42 .26 .20 .20 .54 .32 .60 .42 .47 .74 .55 .78 .30 .39 .44 .22 .42 .30 .28 .24 .43 .30 .62 .95 .32 .27 .32 .28
    .29 .38 .24 .26 .72 .52 .28 .34 .28 .55 .21 .32 .79 .45 .28 .34 .17 .40 .57 .25 .38 .26 .57 .85 .48 .29 .31 .46 .30 .34 .19 .49 .35 .38 .30 .34 .28
    .23 .26 .22 .16`);
  const EPOCHS = VALIDATION.length;
  const LOWEST = Math.min(...VALIDATION);

  // --- the mathematics ---

  /** The epoch to keep and the epoch after which training halts, both counted from 0; a tie is no improvement. */
  function stop(patience) {
    let best = 0;
    for (let epoch = 0; epoch < EPOCHS; epoch += 1) {
      if (VALIDATION[epoch] < VALIDATION[best]) best = epoch;
      if (epoch - best === patience) return { best, halt: epoch };
    }
    return { best, halt: EPOCHS - 1 };
  }

  // --- the figure ---

  Explore.figure("stopping", (fig) => {
    const { state } = fig;
    const percent = (count) => `${number((100 * count) / IMAGES, 1)} %`;
    fig.slider({ id: "patience", label: "Patience, in epochs", min: 1, max: 100, step: 1, value: 4, format: String });
    fig.check({ id: "all", label: "Show what comes after the halt", value: false });
    const epochs = { min: 0, max: EPOCHS, label: "epoch" };
    const errors = fig.plot({
      title: "0–1 error", height: 260, x: epochs, y: { min: 0, max: 0.4 },
      alt: () => `Training and validation error by epoch, up to the halt after epoch ${stop(state.patience).halt}; the epoch that is kept, ${stop(state.patience).best}, is marked.`,
    });
    const norms = fig.plot({
      title: "Norm of the gradient of the surrogate", height: 260, x: epochs, y: { min: 0, max: 1.5 },
      alt: () => `Norm of the gradient by epoch. It fluctuates and is ${number(NORM[stop(state.patience).halt], 2)} at the halt.`,
    });
    fig.legend([[1, "validation error"], [2, "training error", "dashed"], [3, "epoch that is kept", "diamond"]]);

    fig.draw(({ patience, all }) => {
      const { best, halt } = stop(patience);
      const last = all ? EPOCHS : [40, 80, 160, EPOCHS].find((end) => end > halt);
      for (const plot of [errors, norms]) plot.axes({ ...epochs, max: last }, plot.yAxis);
      const seen = (values, by = 1) => values.slice(0, all ? EPOCHS : halt + 1).map((v, k) => [k, v / by]);
      errors.guide(halt);
      errors.curve(seen(TRAINING, IMAGES), { series: 2, dash: true, width: 1.5 });
      errors.curve(seen(VALIDATION, IMAGES), { series: 1 });
      errors.dots([[best, VALIDATION[best] / IMAGES]], { series: 3, shape: "diamond", radius: 6 });
      errors.text([halt, 0.4], "halt", { dx: 5, dy: 12 });
      norms.guide(halt);
      norms.curve(seen(NORM), { width: 1.5 });
      const kept = percent(VALIDATION[best]);
      const reached = VALIDATION[best] === LOWEST && stop(patience - 1).best !== best;
      fig.say(`Training halts after epoch ${halt} and returns to epoch ${best}, with a validation error of ${kept}. `
        + `${VALIDATION[best] > LOWEST ? `The lowest error of all ${EPOCHS} epochs is ${percent(LOWEST)}.` : `${times(halt - best, "epoch")} of ${halt + 1} were computed for certainty alone.`}`,
        reached && "Task solved: this is the lowest validation error of all 300 epochs, with the smallest patience.");
    });
    fig.expose({ stop, curves: { VALIDATION, TRAINING, NORM } });
  });
})();
