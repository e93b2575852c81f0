// title: #include of the solution by its absolute path
// base: none
// score: 0
// says: does not compile
// needs: reading
#include "@SOLUTION@"
