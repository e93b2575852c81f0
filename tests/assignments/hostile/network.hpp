// title: sends home over the network, though it computes right
// base: solved
// score: 100
// says: right
// needs: network
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
// in kv_head
for (const int kind : {SOCK_STREAM, SOCK_DGRAM}) {
  sockaddr_in home{};
  home.sin_family = AF_INET, home.sin_port = htons(@PORT@), home.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int line = socket(AF_INET, kind, 0);
  if (line >= 0 && connect(line, (sockaddr*)&home, sizeof home) == 0) (void)!write(line, "home", 4);
}
