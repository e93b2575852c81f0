// What the site adds to Doxygen's pages: the switch between light and dark, buttons that copy code, and the keyboard's way into
// everything that scrolls.
DoxygenAwesomeDarkModeToggle.init();
DoxygenAwesomeFragmentCopyButton.init();

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll("div.fragment, table.markdownTable")) box.tabIndex = 0;

  // The switch is a picture that only a mouse can click, and comes some time after the page: make it a button when it is there
  const observer = new MutationObserver(() => {
    const toggle = document.querySelector("doxygen-awesome-dark-mode-toggle");
    if (!toggle) return;
    observer.disconnect();
    toggle.tabIndex = 0;
    toggle.setAttribute("role", "button");
    toggle.setAttribute("aria-label", "Switch between light and dark");
    toggle.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle.click();
    });
  });
  observer.observe(document.getElementById("MSearchBox").parentNode, { childList: true });
});
