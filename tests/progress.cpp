// The progress line: silent at first and off a terminal, rare, and wiped at the end. Clock and terminal are the test's own.

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/runner/progress.hpp"
#include "tests/catch.hpp"

using flashsteps::Progress;

TEST_CASE("Nothing is drawn before two seconds", "[progress]") {
  std::ostringstream terminal;
  double now = 100;
  {
    Progress progress("rows", 10, &terminal, [&] { return now; });
    for (int i = 0; i < 10; ++i, now += 0.19) progress.advance();
  }
  CHECK(terminal.str() == "");
}

TEST_CASE("After two seconds a line is drawn, five times a second at most, and wiped at the end", "[progress]") {
  std::ostringstream terminal;
  double now = 100;
  {
    Progress progress("rows", 200, &terminal, [&] { return now; });
    now = 102.5;
    progress.advance(50);
    CHECK(terminal.str() == "\r\x1b[Krows   25 %  (50 of 200)");
    now = 102.6;
    progress.advance(50);
    CHECK(terminal.str() == "\r\x1b[Krows   25 %  (50 of 200)");
    now = 102.8;
    progress.advance(0);
    CHECK(terminal.str() == "\r\x1b[Krows   25 %  (50 of 200)\r\x1b[Krows   50 %  (100 of 200)");
  }
  CHECK(terminal.str() == "\r\x1b[Krows   25 %  (50 of 200)\r\x1b[Krows   50 %  (100 of 200)\r\x1b[K");
}

TEST_CASE("Without a terminal nothing is drawn and the clock is not read", "[progress]") {
  int looks = 0;
  Progress progress("rows", 2, nullptr, [&] { return 10.0 * ++looks; });
  progress.advance();
  progress.advance();
  CHECK(looks == 0);
}

TEST_CASE("More units than announced, or none announced, are no error", "[progress]") {
  std::ostringstream terminal;
  double now = 0;
  Progress over("rows", 1, &terminal, [&] { return now; });
  Progress none("rows", 0, &terminal, [&] { return now; });
  now = 3;
  over.advance(5);
  none.advance(1);
  CHECK(terminal.str() == "\r\x1b[Krows  100 %  (5 of 1)\r\x1b[Krows  100 %  (1 of 0)");
}

TEST_CASE("Threads may advance together and lines stay whole", "[progress]") {
  std::ostringstream terminal;
  std::atomic<int> ticks = 0;
  {
    Progress progress("rows", 4000, &terminal, [&] { return 0.05 * ticks++; });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.advance();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::string text = terminal.str();
  std::istringstream lines(text.substr(0, text.rfind("\r\x1b[K")));
  std::string line;
  std::getline(lines, line, '\r');
  int count = 0;
  for (; std::getline(lines, line, '\r'); ++count) {
    CAPTURE(line);
    CHECK(line.find("\x1b[Krows ") == 0);
    CHECK(line.find(" of 4000)") == line.size() - 9);
  }
  CHECK(count >= 1);  // how many depends on which thread meets another that draws
}
