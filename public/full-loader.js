// Loads the full bundle, which then takes the page over by itself. Put into the document by the first bundle; its
// query is passed on, because a browser does not fetch a module again that failed.
try {
  const { default: init } = await import("./full.js" + new URL(import.meta.url).search);
  await init();
} catch (error) {
  console.warn("The full page could not be loaded:", error);
  dispatchEvent(new Event("radixscope-full-failed"));
}
