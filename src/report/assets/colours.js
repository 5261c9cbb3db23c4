// Colours that people who see colours differently can still tell apart; a name always stands beside them.

const KERNEL_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#56b4e9", "#cc79a7", "#f0e442", "#882255", "#999933", "#44aa99", "#aa4499"];
const REST_COLOURS = ["#8a8f96", "#a8adb4"];
const ACCOUNT_COLOURS = {
  busy: "#009e73", overhead: "#cc79a7", held: "#aa4499", dependency: "#56b4e9", window: "#d55e00", heap: "#e69f00",
  deps: "#882255", tensors: "#999933", orchestrator: "#0072b2", drained: "var(--rest)",
};
const PHASES = [["working", "#0072b2"], ["waits for submit_at", "#a8adb4"], ["window full", "#d55e00"], ["heap full", "#e69f00"],
  ["dependency entries used up", "#882255"], ["tensor-map entries used up", "#999933"]];
const JOBS = [["admit", "#56b4e9"], ["complete", "#009e73"], ["dispatch", "#cc79a7"]];
const BLAME_COLOURS = {
  compute: "#009e73", worker: "#f0e442", window: "#d55e00", heap: "#e69f00", deps: "#882255", tensors: "#999933", policy: "#aa4499",
  submit: "#0072b2", submit_at: "var(--rest)", admit: "#56b4e9", complete: "#44aa99", dispatch: "#cc79a7", scheduler_queue: "#332288", pickup: "#ddaa77",
};

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/// How much of a pixel is covered, in steps; every label has one colour a step.
const STEPS = 16;

/// Colours of a list of labels over a background as pixels: label × (STEPS + 1) + step.
function pixelTable(colours, background) {
  const table = new Uint32Array(colours.length * (STEPS + 1));
  colours.forEach((colour, label) => {
    const [r, g, b] = rgb(colour);
    for (let step = 0; step <= STEPS; step += 1) {
      const part = step === 0 ? 0 : 0.25 + (0.75 * step) / STEPS;
      const mix = [r, g, b].map((value, i) => Math.round(background[i] + (value - background[i]) * part));
      table[label * (STEPS + 1) + step] = ((255 << 24) | (mix[2] << 16) | (mix[1] << 8) | mix[0]) >>> 0;
    }
  });
  return table;
}

const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
