// title: a results file that claims 10^18 numbers, and numbers with giant exponents
// base: starter
// score: 0
// says: index
// needs:
#include <fstream>
#include <unistd.h>
// in kv_head
std::ofstream index("index.txt");
index << "999999999 999999999\n";
for (Index n = 0; n < heads; ++n) index << "0x1p+99999\n1e999999999\n";
index.close();
std::ofstream("end.txt") << "done\n";
_exit(0);
