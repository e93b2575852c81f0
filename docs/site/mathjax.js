// Formulas for screen readers too, on the pages that have any: without one, this extension of MathJax 2.7.9 fails
MathJax.Hub.Register.StartupHook("TeX Jax Ready", function () {
  return MathJax.Ajax.Require("[MathJax]/extensions/AssistiveMML.js");
});
// No line of progress; and Tab does not stop at every formula
MathJax.Hub.Config({messageStyle: "none", menuSettings: {inTabOrder: false}});
// A formula in the text that is wider than a small window scrolls in itself
MathJax.Hub.Register.StartupHook("End", function () {
  function mark() {
    document.querySelectorAll(".MathJax_SVG").forEach(function (formula) {
      var box = formula.closest("p, li, td, th, dd, div");
      formula.classList.toggle("fs-wide", formula.firstElementChild.getBoundingClientRect().width > box.clientWidth);
    });
  }
  mark();
  window.addEventListener("resize", mark);
});
