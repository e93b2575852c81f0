// title: leaves a daemon behind, though it computes right
// base: solved
// score: 100
// says: right
// needs: descendants
#include <csignal>
#include <unistd.h>
// in kv_head
if (fork() == 0) {
  setsid();
  if (fork() == 0) {
    for (int n = 1; n < 65; ++n) std::signal(n, SIG_IGN);
    for (;;) usleep(10000);
  }
  _exit(0);
}
