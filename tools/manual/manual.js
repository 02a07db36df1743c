/* The colours of a dark desktop: Debian's theme has them only for readers who chose them with its button. */
(function () {
  const body = document.body, dark = window.matchMedia("(prefers-color-scheme: dark)");

  function follow() {
    if (dark.matches && body.dataset.theme === "auto")
      body.dataset.theme = "dark";
  }
  new MutationObserver(follow).observe(body, { attributeFilter: ["data-theme"] });
  follow();
})();
