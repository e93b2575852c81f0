// From an address in a kernel's code to file and line, by addr2line of binutils, which comes with the compiler.
#include "common/cuda_on_cpu/tracer.hpp"
#include <link.h>
#include <unistd.h>
#include <cstdio>
#include <set>

namespace flashsteps::cuda_on_cpu::trace {
namespace {

std::vector<std::pair<Site, std::string>> sites;
constexpr Place site_flag = Place(1) << 63;  // no address of a program
std::map<Place, std::string> known;

struct Object {
  std::uintptr_t address;
  std::string file;
  std::uintptr_t base = 0;
};
int find_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& object = *static_cast<Object*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD || object.address - (info->dlpi_addr + h.p_vaddr) >= h.p_memsz) continue;
    object.file = info->dlpi_name[0] != 0 ? info->dlpi_name : "/proc/" + std::to_string(getpid()) + "/exe";
    object.base = info->dlpi_addr;
    return 1;
  }
  return 0;
}
std::string quoted(const std::string& s) {
  std::string q = "'";
  for (const char c : s) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

/// Of the places in `object`, the innermost of the inlined frames that is in a kernel's source, else the innermost.
void ask(const std::string& object, const std::vector<std::pair<Place, std::uintptr_t>>& addresses) {
  std::string command = "addr2line -i -a -s -e " + quoted(object);
  char text[512];
  for (const auto& [place, offset] : addresses) {
    std::snprintf(text, sizeof text, " 0x%zx", std::size_t(offset));
    command += text;
  }
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return;
  std::size_t at = std::size_t(-1);
  while (std::fgets(text, sizeof text, pipe) != nullptr) {
    std::string line = text;
    line.erase(line.find_last_not_of("\n ") + 1);
    if (line.starts_with("0x")) {
      ++at;
      continue;
    }
    if (at >= addresses.size()) break;
    if (const auto note = line.find(" (disc"); note != std::string::npos) line.erase(note);
    std::string& best = known[addresses[at].first];
    if (best.empty() || (best.find(".cu:") == std::string::npos && line.find(".cu:") != std::string::npos)) best = line;
  }
  pclose(pipe);
}

}  // namespace

Place place_of(Site site) {
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (sites[i].first.line == site.line && (sites[i].first.file == site.file || std::strcmp(sites[i].first.file, site.file) == 0)) return site_flag | i;
  sites.push_back({site, cuda_on_cpu::text(site)});
  return site_flag | (sites.size() - 1);
}

void look_up(const std::vector<Place>& places) {
  std::map<std::string, std::vector<std::pair<Place, std::uintptr_t>>> by_object;
  for (const Place p : std::set<Place>(places.begin(), places.end())) {
    if ((p & site_flag) != 0 || known.contains(p)) continue;
    Object object{p, {}};
    if (dl_iterate_phdr(find_object, &object) != 0) by_object[object.file].push_back({p, p - 1 - object.base});  // -1: in the call
  }
  for (const auto& [file, addresses] : by_object) ask(file, addresses);
}

std::string text(Place p) {
  if ((p & site_flag) != 0) return sites[p & ~site_flag].second;
  look_up({p});
  const std::string& s = known[p];
  return s.empty() ? "an unknown line" : s;
}

}  // namespace flashsteps::cuda_on_cpu::trace
