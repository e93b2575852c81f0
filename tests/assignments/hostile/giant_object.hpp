// title: an object file of 100 GB
// base: solved
// score: 0
// says: does not compile
// needs: disk
// compiler: 20 seconds
__attribute__((used)) static char giant[100'000'000'000] = {1};
