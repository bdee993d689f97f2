// Runs before the page's own scripts: keeps what cannot be queried later, and when frames begin and end with a picture. By the
// page's own clock: a mark in Chromium's trace costs up to a millisecond of what is measured.
(() => {
  const seen = { memories: [], socketBytes: 0, frames: [], frameTimes: [], drawTimes: [], draws: 0, content: null };
  globalThis.__seen = seen;

  const keep = (result) => {
    const exports = (result.instance ?? result).exports;
    if (exports.memory) seen.memories.push(new WeakRef(exports.memory));
    seen.startedMs = performance.now();
    return result;
  };
  for (const name of ["instantiate", "instantiateStreaming"]) {
    const original = WebAssembly[name];
    WebAssembly[name] = (...args) => original.apply(WebAssembly, args).then(keep);
  }

  globalThis.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => {
        seen.socketBytes += data.byteLength ?? data.size ?? data.length;
        seen.heardMs = performance.now();
      });
    }
  };

  // A picture has content when some colours are in it: a ground and an axis are few. Afterwards nobody looks any more.
  const COLOURS = 4;
  const coloursOf = ({ data }) => {
    const pixels = new Uint32Array(data.buffer, data.byteOffset, data.length >> 2);
    const colours = new Set();
    for (let at = 0; at < pixels.length && colours.size < COLOURS; at += 97) colours.add(pixels[at]);
    return colours.size;
  };
  const drawn = (canvas, picture) => {
    if (!canvas.closest("[data-testid=tree]")) return;
    seen.draws += 1;
    if (seen.counting) seen.drawTimes.push(performance.now());
    if (seen.content || coloursOf(picture()) < COLOURS) return;
    const { startedMs, heardMs, socketBytes: bytes } = seen;
    const content = { startedMs, heardMs, putMs: performance.now(), bytes };
    seen.content = content;
    // What was put is seen after the frame in which it was put.
    requestAnimationFrame(() => setTimeout(() => (content.shownMs = performance.now())));
  };
  const context = CanvasRenderingContext2D.prototype;
  const { putImageData, drawImage } = context;
  context.putImageData = function (image, ...rest) {
    putImageData.call(this, image, ...rest);
    drawn(this.canvas, () => image);
  };
  context.drawImage = function (...args) {
    drawImage.apply(this, args);
    drawn(this.canvas, () => this.getImageData(0, 0, this.canvas.width, this.canvas.height));
  };

  // A frame each while `counting`: the loop itself asks for frames.
  seen.count = () => {
    seen.counting = true;
    let before = 0;
    const frame = (now) => {
      if (!seen.counting) return;
      seen.frameTimes.push(performance.now());
      if (before) seen.frames.push(now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };
  seen.stop = () => {
    seen.counting = false;
    performance.clearMarks();
    const { frames: intervals, frameTimes: frames, drawTimes: draws } = seen;
    Object.assign(seen, { frames: [], frameTimes: [], drawTimes: [] });
    return { intervals, frames, draws };
  };
})();
