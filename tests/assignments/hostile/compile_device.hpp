// title: #include of a device that never ends
// base: solved
// score: 0
// says: does not compile
// needs: time memory
// compiler: 20 seconds
#include "/dev/zero"
