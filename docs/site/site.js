// What the site adds to Doxygen's pages: the switch between light and dark, buttons that copy code, and the keyboard's way into
// everything that scrolls.
DoxygenAwesomeDarkModeToggle.init();
DoxygenAwesomeFragmentCopyButton.init();

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll("div.fragment, table.markdownTable")) box.tabIndex = 0;
});
