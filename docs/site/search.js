// The search of the site: Lunr over the text of all sections and the names in the code. The data are loaded when the field is first used.
(() => {
  const MOST = 12;
  let index = null;
  let entries = [];

  // Chinese has no spaces: every sign is a word
  const split = (text) => text.toLowerCase().replace(/([\u3400-\u9fff])/g, " $1 ").split(/[^\p{L}\p{N}]+/u);
  // Not the long numbers in base 16 of the kernels' digests: nobody types them, and Lunr 2.3.9 loses some
  const words = (text) => split(text).filter((word) => word && !(word.length > 8 && /\d/.test(word) && /[a-z]/.test(word)));

  function build() {
    entries = window.flashstepsSearch;
    index = lunr(function () {
      this.pipeline.reset();
      this.searchPipeline.reset();
      this.tokenizer = (value) => words(String(value)).map((word) => new lunr.Token(word, {}));
      this.field("title", { boost: 8 });
      this.field("part", { boost: 2 });
      this.field("text");
      entries.forEach(([title, , part, text], id) => this.add({ id, title: `${title} ${title.replace(/_/g, " ")}`, part, text }));
    });
  }

  function load(name) {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = name;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
  }

  let loading = null;
  const ready = () => (loading ??= load("lunr.min.js").then(() => load("search_data.js")).then(build));

  // Every word must be there, whole or as a beginning
  function find(text) {
    const wanted = words(text);
    if (!wanted.length) return [];
    const known = (word) => index.tokenSet.intersect(lunr.TokenSet.fromString(`${word}*`)).toArray().length > 0;
    if (!wanted.every(known)) return []; // Lunr 2.3.9 fails on a required word that is nowhere
    return index
      .query((query) => {
        for (const word of wanted) {
          query.term(`${word}*`, { presence: lunr.Query.presence.REQUIRED });
          query.term(word, { boost: 10 });
        }
      })
      .slice(0, MOST)
      .map((result) => entries[result.ref]);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const field = document.getElementById("fs-search");
    const list = document.createElement("div");
    list.id = "fs-results";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Results");
    list.hidden = true;
    document.body.append(list);
    let at = -1;

    function show(found) {
      at = -1;
      list.replaceChildren(
        ...found.map(([title, address, part], number) => {
          const link = document.createElement("a");
          link.href = address;
          link.id = `fs-result-${number}`;
          link.setAttribute("role", "option");
          link.tabIndex = -1;
          link.append(title);
          if (part) {
            const small = document.createElement("small");
            small.textContent = part;
            link.append(small);
          }
          return link;
        }),
      );
      if (!found.length) {
        const none = document.createElement("p");
        none.textContent = "Nothing found";
        list.append(none);
      }
      open(true);
    }

    function open(visible) {
      list.hidden = !visible;
      field.setAttribute("aria-expanded", String(visible));
      if (!visible) field.removeAttribute("aria-activedescendant");
      const box = field.getBoundingClientRect();
      list.style.top = `${box.bottom + 8}px`;
      list.style.left = `${Math.max(8, Math.min(box.left, window.innerWidth - list.offsetWidth - 8))}px`;
    }

    function choose(next) {
      const links = list.querySelectorAll("a");
      if (!links.length) return;
      links[at]?.removeAttribute("aria-selected");
      at = (next + links.length) % links.length;
      links[at].setAttribute("aria-selected", "true");
      links[at].scrollIntoView({ block: "nearest" });
      field.setAttribute("aria-activedescendant", links[at].id);
    }

    field.addEventListener("focus", ready, { once: true });
    field.addEventListener("input", () => ready().then(() => (field.value.trim() ? show(find(field.value)) : open(false))));
    field.addEventListener("keydown", (event) => {
      const links = list.querySelectorAll("a");
      if (event.key === "ArrowDown") choose(at + 1);
      else if (event.key === "ArrowUp") choose(at < 0 ? -1 : at - 1);
      else if (event.key === "Enter" && !list.hidden && links.length) links[Math.max(at, 0)].click();
      else if (event.key === "Escape") open(false);
      else return;
      event.preventDefault();
    });
    document.addEventListener("click", (event) => {
      if (!list.contains(event.target) && event.target !== field) open(false);
    });
    list.addEventListener("click", () => open(false));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.target.closest("input, textarea, select")) {
        event.preventDefault();
        field.focus();
      }
    });
  });
})();
