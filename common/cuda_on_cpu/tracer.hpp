#pragma once
// Inside the tracer. The kernels, and nothing else, are compiled with -fsanitize=thread: the compiler then calls __tsan_read4 and
// so on before each access that is not to a private variable. The program is linked without ThreadSanitizer, and hooks.cpp
// answers these calls. The Linux kernel's KCSAN does the same.
#include "common/cuda_on_cpu/block.hpp"
#include "common/cuda_on_cpu/counters.hpp"
#include <map>

namespace flashsteps::cuda_on_cpu::trace {

/// A place in the source: the return address of a hook, or a Site, noted under a number.
using Place = std::uintptr_t;
Place place_of(Site);     ///< @return its number
std::string text(Place);  ///< @return file.cu:12
/// Looks these up at once: one call of addr2line instead of many.
void look_up(const std::vector<Place>&);

/// Findings of a launch, each once for a pair of places.
class Findings {
 public:
  /// @param first,second  the pair; the second is any number where only one place is known
  /// @param message       `std::string()`, called if the pair is new
  template <class Text> void add(Place first, Place second, Text message) {
    const auto [entry, is_new] = messages_.try_emplace({first, second});
    if (is_new) entry->second = message();
  }
  void clear() { messages_.clear(); }  ///< Forgets them.
  void report();                       ///< @throws Error if there are any

 private:
  std::map<std::pair<Place, Place>, std::string> messages_;
};

/// Who touched what in the block's shared memory, and whether a barrier or a __syncwarp lay between. A unit is two bytes, so that
/// neighbouring halves are told apart. Lanes of a warp have vector clocks, for __syncwarp may name some of them.
class SharedShadow {
 public:
  void begin(char* base, std::size_t bytes);  ///< A block begins. @param base,bytes its shared memory
  void barrier() { ++epoch_; }                ///< All its threads have met.
  void warp_sync(int warp, unsigned mask);    ///< Lanes have met. @param warp,mask which ones
  /// @{
  /// A thread reads, writes, or begins an asynchronous copy to these bytes.
  /// @param thread        of the block
  /// @param offset,bytes  where, and how many
  void read(int thread, Place, std::size_t offset, std::size_t bytes, Findings&);
  void write(int thread, Place, std::size_t offset, std::size_t bytes, Findings&);
  void copy(int thread, Place, std::size_t offset, std::size_t bytes, Findings&);
  /// @}
  /// A thread waited for its copy to these bytes.
  /// @param thread        of the block
  /// @param offset,bytes  where, and how many
  void landed(int thread, std::size_t offset, std::size_t bytes);

 private:
  struct Access {
    int thread = -1;
    std::uint32_t epoch = 0, clock = 0;
    Place place = 0;
  };
  struct Unit {
    std::uint32_t generation = 0;
    bool in_flight = false;
    Access writer, reader, other_reader;
  };
  Unit& unit(std::size_t i);
  Access now(int thread, Place place) const { return {thread, epoch_, clock_[thread], place}; }
  bool ordered(const Access&, int thread) const;
  void race(const char* what, const Access&, int thread, Place, std::size_t offset, Findings&);

  std::vector<Unit> units_;
  std::uint32_t generation_ = 0, epoch_ = 0;
  std::uint32_t clock_[1024], seen_[1024][32];  // seen[a][b]: what a knows of the clock of lane b of its warp
};

/// A named buffer in global memory, and which block read, wrote or added to each two bytes of it in this launch.
struct Buffer {
  char* base;               ///< where it starts
  std::size_t bytes;        ///< how large it is
  std::string name;         ///< in messages
  /// The last access of one kind.
  struct Last {
    std::uint32_t launch = 0,  ///< its number
        block = 0;             ///< its number
  };
  /// Two bytes.
  struct Unit {
    Last of[3];             ///< by Kind
  };
  std::vector<Unit> units;  ///< all of it
  BufferCounters counters;  ///< its traffic
  bool alive = true;        ///< false when it was given back
};
Buffer* find_buffer(std::uintptr_t);     ///< @return the buffer of that address, nullptr if it is in none
std::string neighbours(std::uintptr_t);  ///< @return the nearest buffer to an address that is in none, if one is near
/// Finds accesses of different blocks to the same bytes of which one is a write.
/// @param bytes  of the access
void check_between_blocks(Buffer&, std::uintptr_t, std::size_t bytes, Kind, Place, Findings&);
/// What earlier launches did is in order.
void next_launch();

/// An access of one lane, kept until its warp is done.
struct Request {
  Place place;             ///< of the access
  std::uintptr_t address;  ///< what it touches
  std::uint8_t bytes,      ///< how many
      lane;                ///< 0 to 31
  bool write,              ///< a store or an atomic addition, else a load
      shared;              ///< in shared memory
};
/// Counts an access of several lanes at once.
/// @param n  lanes
void count(const Request* const*, int n);

/// Every access goes through here. Fails the thread when it is out of bounds.
/// @param bytes  of the access
void note(Place, const void*, std::size_t bytes, Kind);
bool is_active();  ///< @return is a traced kernel running?
/// The same, unless the thread is in a function of the layer.
/// @param bytes  of the access
void note_from_kernel(Place, const void*, std::size_t bytes, Kind);

}  // namespace flashsteps::cuda_on_cpu::trace
