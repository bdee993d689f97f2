// The same boxes drawn by others, in a page of their own.
(() => {
  const FIELDS = 6;
  const GROUND = "#111";
  const COLOURS = ["#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#9c755f"];
  const SHARED = "#777";
  let boxes, count, across, down, canvas, context, chart;

  const colour = (owners) => (owners & (owners - 1) ? SHARED : COLOURS[Math.log2(owners) % COLOURS.length]);
  const frame = () => new Promise(requestAnimationFrame);

  // Whole picture, or a part of it: left edge and widths in blocks, and how many pixels one is wide and high.
  const look = (zoom, panned) => ({
    left: across * 0.3 * (zoom > 1) + panned / ((canvas.width * zoom) / across),
    wide: (canvas.width * zoom) / across,
    high: (canvas.height * Math.min(zoom, 4)) / down,
  });

  const rectangles = ({ left, wide, high }, isCulled) => {
    context.fillStyle = GROUND;
    context.fillRect(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let at = 0; at < count * FIELDS; at += FIELDS) {
      const x = (boxes[at + 1] - left) * wide;
      const width = boxes[at + 2] * wide;
      const y = boxes[at + 3] * high;
      if (isCulled && (x > canvas.width || x + width < 0 || y > canvas.height || width < 0.5)) continue;
      context.fillStyle = colour(boxes[at + 5]);
      context.fillRect(x, y, width, boxes[at + 4] * high);
      drawn += 1;
    }
    // What was put off is drawn now.
    context.getImageData(0, 0, 1, 1);
    return drawn;
  };

  const option = (least) => {
    const nodes = [];
    const roots = [];
    for (let at = 0, id = 0; id < count; id += 1, at += FIELDS) {
      if (boxes[at + 2] < least) continue;
      const node = { value: boxes[at + 2], itemStyle: { color: colour(boxes[at + 5]) }, children: [] };
      nodes[id] = node;
      (boxes[at] < 0 ? roots : nodes[boxes[at]].children).push(node);
    }
    const off = { show: false };
    const plain = { borderWidth: 0, gapWidth: 0 };
    const series = {
      type: "treemap", id: "tree", data: roots, roam: true, nodeClick: false, leafDepth: null, breadcrumb: off, label: off,
      upperLabel: off, itemStyle: plain, left: 0, top: 0, width: canvas.width, height: canvas.height,
    };
    return { animation: false, tooltip: off, series: [series] };
  };

  const timed = (work) => {
    const start = performance.now();
    const result = work();
    return [performance.now() - start, result];
  };
  const several = async (times, work) => {
    const all = [];
    let result;
    for (let time = 0; time < times; time += 1) {
      await frame();
      const [ms, of] = timed(() => work(time));
      all.push(ms);
      result = of;
    }
    all.sort((a, b) => a - b);
    const at = (share) => all[Math.min(all.length - 1, Math.floor(all.length * share))];
    return { p50: at(0.5), p95: at(0.95), times: all.length, boxes: result };
  };

  globalThis.rivals = {
    setUp(base64, size, whole) {
      boxes = new Float32Array(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
      count = boxes.length / FIELDS;
      [across, down] = whole;
      document.body.style.margin = 0;
      document.body.replaceChildren();
      canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = size;
      document.body.append(canvas);
      context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    },
    rectangles: (zoom, isCulled) =>
      several(40, (time) => rectangles(look(zoom, zoom > 1 ? time * 12 : 0), isCulled)),
    // All boxes, or those that are at least half a pixel wide in the whole picture.
    treemap: async (isCulled) => {
      const element = document.createElement("div");
      element.style.width = `${canvas.width}px`;
      element.style.height = `${canvas.height}px`;
      document.body.replaceChildren(element);
      const given = option(isCulled ? (0.5 * across) / canvas.width : 0);
      chart = echarts.init(element, null, { renderer: "canvas" });
      const shown = () => (chart.getZr().flush(), chart.getZr().storage.getDisplayList().length);
      const whole = await several(3, () => (chart.setOption(given, { notMerge: true }), shown()));
      const rootRect = { width: canvas.width * 4, height: canvas.height * 4 };
      const move = (time) => ({
        type: "treemapMove", seriesId: "tree",
        rootRect: { ...rootRect, x: -canvas.width * 0.3 - 12 * time, y: -canvas.height },
      });
      const pan = await several(10, (time) => (chart.dispatchAction(move(time), { flush: true }), shown()));
      chart.dispose();
      return { whole, pan };
    },
  };
})();
