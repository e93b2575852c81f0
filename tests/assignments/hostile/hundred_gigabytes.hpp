// title: needs 100 GB
// base: solved
// score: 0
// says: bad_alloc
// needs: memory
#include <vector>
// in kv_head
std::vector<std::vector<char>> all;
all.reserve(100'000);
for (int n = 0; n < 100'000; ++n) all.emplace_back(1'000'000, 'x');
