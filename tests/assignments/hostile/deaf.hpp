// title: ignores every signal and stops itself
// base: solved
// score: 0
// says: ran longer than
// needs: time
#include <csignal>
#include <unistd.h>
// in kv_head
for (int n = 1; n < 65; ++n) std::signal(n, SIG_IGN);
sigset_t all;
sigfillset(&all);
sigprocmask(SIG_BLOCK, &all, nullptr);
kill(getpid(), SIGSTOP);
for (;;) pause();
