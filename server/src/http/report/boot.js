// Starts the page from what stands in it: each file in a block of its own, in base64, programs compressed.
const bytes = (name) => {
  const block = document.getElementById(`file:${name}`);
  const text = atob(block.textContent);
  const file = Uint8Array.from(text, (char) => char.charCodeAt(0));
  block.remove();
  return file;
};
const unpacked = (name, type = 'application/octet-stream') => {
  const stream = new Blob([bytes(name)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream, { headers: { 'content-type': type } });
};
const address = async (name, type) =>
  URL.createObjectURL(new Blob([await unpacked(name).arrayBuffer()], { type }));
const script = (text) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
// A script with all that it needs: of a page from a disk, a worker may load nothing, not even what the page made.
const worker = async (name) => {
  const wasm = document.getElementById(`file:${name}_bg.wasm`);
  const module = await unpacked(`${name}.js`).text();
  const init = module.match(/(\w+) as default/)[1];
  const plain = module
    .replace(/export\s*\{[^}]*\};?/, '')
    .replace(/^export /gm, '')
    .replaceAll('import.meta.url', '""');
  const start = `${plain}
    const packed = Uint8Array.from(atob('${wasm.textContent}'), (char) => char.charCodeAt(0));
    const program = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    new Response(program).arrayBuffer().then((bytes) => ${init}({ module_or_path: bytes }))
      .catch((error) => setTimeout(() => { throw error; }));`;
  wasm.remove();
  return script(start);
};

const { recording, charts, view } = document.body.dataset;
// What its maker looked at; an address that says something itself is followed.
if (view && !location.search && !location.hash) history.replaceState(null, '', view);
// Parts of the page's program, unpacked when they are opened.
window.radixscopeFile = async (name) => unpacked(name, 'application/wasm');
window.radixscopeFiles = [new File([bytes('recording')], recording)];
window.radixscopeAssets = {
  'nav.svg#': '#mark-',
  'player_loader.js': await worker('player'),
  'worker_loader.js': await worker('worker'),
  'tokenizer_loader.js': '',
  [charts]: await address('charts.js', 'text/javascript'),
};
const page = await import(await address('page.js', 'text/javascript'));
await page.default({ module_or_path: await unpacked('page.wasm').arrayBuffer() });
