// title: prints for ever
// base: solved
// score: 0
// says: KiB of output
// needs: output
#include <unistd.h>
// in kv_head
for (char text[4096] = "right ";;) (void)!write(1, text, sizeof text);
