// title: never ends
// base: solved
// score: 0
// says: ran longer than
// needs: time
// in kv_head
for (volatile int i = 0;; i = 0) (void)i;
