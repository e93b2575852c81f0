#include "common/runner/ladder.hpp"

#include "common/runner/evaluate.hpp"
#include "common/runner/parallel.hpp"
#include "common/runner/report.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace flashsteps {
namespace {

using Row = std::vector<std::string>;
const std::string begin_mark = "<!-- ladder -->", end_mark = "<!-- /ladder -->";

/// The columns; the exact ones depend on no machine.
struct Column {
  const char* title;
  bool exact, right;
};
constexpr Column columns[] = {{"step", true, false},         {"what is new", true, false},        {"equal to, with the share of the error budget", false, false},
                              {"read", true, true},          {"written", true, true},             {"added", true, true},
                              {"÷ standard", true, true},    {"÷ before", true, true},            {"on chip", true, true},
                              {"other FLOPs", true, true},   {"time", false, true},               {"before ÷ this", false, true}};

std::string ratio(double a, double b) { return b > 0 ? fmt::format("{:.{}f}", a / b, a / b < 0.995 ? 3 : a / b < 10 ? 2 : 1) : ""; }

/// What a form is equal to, and the largest share of the budget that it took.
std::string equal_to(const Outcome& outcome, const FormOutcome& form) {
  std::string against;
  double share = 0;
  bool equal = true;
  for (const Check& check : outcome.checks) {
    const bool mine = check.form == form.name;
    if (!mine && !(check.against == form.name)) continue;
    equal = equal && check.comparison.equal();
    share = worse(share, check.comparison.share());
    const std::string other = mine ? check.against : check.form;
    if (against.find(other) == std::string::npos && other != "definition") against += (against.empty() ? "" : ", ") + other;
  }
  return fmt::format("{}{}{}: {:.0f} %", equal ? "" : "NOT EQUAL ", against.empty() ? "" : against + ", ", "definition", std::max(1.0, std::ceil(100 * share)));
}

Row row_of(const Outcome& outcome, const FormOutcome& form) {
  const Step& step = *outcome.step;
  const bool main = form.name == outcome.forms.front().name;
  const FormOutcome *before = outcome.beside(form), *standard = outcome.beside_standard(form);
  return {fmt::format("{:02}{}", step.number, outcome.forms.size() > 1 ? " " + form.name : ""),
          main ? step.title : "",
          equal_to(outcome, form),
          with_commas(form.traffic.reads),
          with_commas(form.traffic.writes),
          form.traffic.atomics > 0 ? with_commas(form.traffic.atomics) : "",
          form.name == "standard" ? "1" : standard ? ratio(double(moved(form.traffic)), double(moved(standard->traffic_formula))) : "",
          before ? ratio(double(moved(form.traffic)), double(moved(before->traffic_formula))) : "",
          with_commas(form.peak),
          with_commas(form.flops.other),
          duration(form.seconds),
          before ? fmt::format("{:.2f}", before->seconds / form.seconds) : ""};
}

/// How wide a text is on screen: UTF-8, no wide characters.
std::size_t width(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text) n += (c & 0xC0) != 0x80;
  return n;
}

std::string markdown(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < std::size(columns); ++c) {
    widths.push_back(width(columns[c].title));
    for (const Row& row : rows) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string text, rule;
  const auto line = [&](const Row& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string room(widths[c] - width(row[c]), ' ');
      text += "| " + (columns[c].right ? room + row[c] : row[c] + room) + " ";
    }
    text += "|\n";
  };
  Row titles;
  for (const Column& column : columns) titles.push_back(column.title);
  line(titles);
  for (std::size_t c = 0; c < widths.size(); ++c) rule += "|" + std::string(widths[c] + 1, '-') + (columns[c].right ? ":" : "-");
  text += rule + "|\n";
  for (const Row& row : rows) line(row);
  return text;
}

/// The processor's name, as the system tells it.
std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "an unknown processor";
}

struct Table {
  std::vector<Row> rows;
  std::string text;
  bool equal = true;
};

Table make_table(const std::vector<const Step*>& steps) {
  Table table;
  Outcome last;
  for (const Step* step : steps) {
    Outcome outcome = evaluate(*step, Options{});
    table.equal = table.equal && outcome.equal();
    for (const FormOutcome& form : outcome.forms)
      if (form.home == step->name) table.rows.push_back(row_of(outcome, form));
    last = std::move(outcome);
  }
  table.text = markdown(table.rows);
  table.text += fmt::format(
      "\nQ, K, V of layer 0 of all-MiniLM-L6-v2: {} heads, {} queries and keys, head dimension {}; 07 and 08 causal, 08 with K and V mean-pooled to {} heads. "
      "Elements over all heads, float, M = {} on chip. An element added atomically counts in the ratios as one read and one written. "
      "\"÷ standard\" is the traffic over that of standard attention (backward: of the standard backward pass), \"÷ before\" over that of the step before: "
      "for 02 and 03 over the sweeps of the step before, for 06 over the standard backward pass, for 07 over 05 and 06 without a mask. "
      "\"other FLOPs\" are those outside of matrix products; in 01 to 03, which sum over all keys term by term, most of them keep what rounding loses. ",
      last.heads, last.seq_q, last.head_dim, last.kv_heads, with_commas(49152));
  table.text += fmt::format("Times: {}, {} threads.\n", machine(), threads());
  table.text +=
      "\nWhy do 01 (three sweeps), 02 and 03 move more than standard attention? One row at a time, K and V are read again for every query: "
      "more than storing S costs, until the tiles of 04 let many queries share them.\n";
  return table;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw BadInput(path + ": cannot be read");
  return text.str();
}

/// Where the table stands in the text: behind the first mark, before the second.
std::pair<std::size_t, std::size_t> between_marks(const std::string& text, const std::string& path) {
  const std::size_t begin = text.find(begin_mark), end = text.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw BadInput(fmt::format("{}: the lines {} and {} are not there", path, begin_mark, end_mark));
  return {begin + begin_mark.size(), end};
}

void update(const std::string& path, const Table& table) {
  std::string text = read_file(path);
  const auto [begin, end] = between_marks(text, path);
  text.replace(begin, end - begin, "\n" + table.text);
  std::ofstream file(path + ".part");
  file << text;
  file.close();
  if (!file || std::rename((path + ".part").c_str(), path.c_str()) != 0) throw BadInput(path + ": cannot be written");
}

/// The cells of the table's rows in a text.
std::vector<Row> parse_rows(const std::string& text) {
  std::vector<Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '|') continue;
    Row row;
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) {
      const std::size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
      row.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    rows.push_back(row);
  }
  if (rows.size() >= 2) rows.erase(rows.begin(), rows.begin() + 2);  // titles and rule
  return rows;
}

bool check(const std::string& path, const Table& table) {
  const std::string text = read_file(path);
  const auto [begin, end] = between_marks(text, path);
  const std::vector<Row> rows = parse_rows(text.substr(begin, end - begin));
  bool same = rows.size() == table.rows.size();
  if (!same) fmt::print("{}: {} rows, the steps make {}\n", path, rows.size(), table.rows.size());
  for (std::size_t r = 0; same && r < rows.size(); ++r)
    for (std::size_t c = 0; c < std::size(columns); ++c) {
      const std::string written = c < rows[r].size() ? rows[r][c] : "";
      if (!columns[c].exact || written == table.rows[r][c]) continue;
      fmt::print("{}: row {}, column \"{}\": \"{}\" is written, the steps make \"{}\"\n", path, table.rows[r][0], columns[c].title, written, table.rows[r][c]);
      same = false;
    }
  if (!same) fmt::print("`make ladder` writes the table anew\n");
  return same;
}

}  // namespace

int run_ladder(const std::vector<const Step*>& steps, int argc, const char* const* argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (argc != 1 && !(argc == 3 && (verb == "--update" || verb == "--check"))) {
    std::fprintf(stderr, "ladder: takes nothing, --update FILE or --check FILE\n");
    return 2;
  }
  try {
    const Table table = make_table(steps);
    if (argc == 1) fmt::print("{}", table.text);
    if (verb == "--update") update(argv[2], table);
    if (verb == "--check" && !check(argv[2], table)) return 1;
    return table.equal ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ladder: %s\n", error.what());
    return 2;
  }
}

}  // namespace flashsteps
