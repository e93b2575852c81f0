// title: forks for ever
// base: solved
// score: 0
// says: ran longer than
// needs: time processes descendants
#include <unistd.h>
// in kv_head
for (;;) (void)!fork();
