// title: exit(0) before the end
// base: solved
// score: 0
// says: ended with status 0 before its results were written
// needs:
#include <cstdlib>
// in kv_head
std::exit(0);
