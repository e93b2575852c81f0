// title: a file of 100 GB
// base: solved
// score: 0
// says: larger than
// needs: disk
#include <fcntl.h>
#include <unistd.h>
// in kv_head
(void)!ftruncate(open("hole", O_CREAT | O_RDWR, 0600), 100'000'000'000);
