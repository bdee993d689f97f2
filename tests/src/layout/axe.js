// What axe finds that is serious or critical: the rule and the element, and how to mend it.
axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, impact, nodes }) =>
      nodes.slice(0, 8).map(({ target, failureSummary }) => [
        `${impact}: ${id} at ${target.join(" ").replace(/\d+/g, "0")}`,
        failureSummary.replace(/\s+/g, " ").slice(0, 160),
      ])))
