// title: makes files for ever
// base: solved
// score: 0
// says: the program
// needs: disk
#include <string>
#include <sys/stat.h>
// in kv_head
for (long n = 0;; ++n) mkdir(std::to_string(n).c_str(), 0700);
