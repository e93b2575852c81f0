// title: needs memory in several processes, each within its limit
// base: solved
// score: 0
// says: MiB of memory
// needs: memory processes
#include <unistd.h>
#include <vector>
// in kv_head
for (int n = 0; n < 5; ++n)
  if (fork() == 0) {
    volatile char* const block = new char[200 << 20];
    for (long i = 0; i < 200 << 20; i += 4096) block[i] = 1;
    sleep(60);
    _exit(0);
  }
sleep(60);
