// title: templates that take the compiler for ever
// base: solved
// score: 0
// says: the compiler
// needs: time memory
// compiler: 20 seconds
template <int depth, long path> struct Bomb : Bomb<depth - 1, 2 * path>, Bomb<depth - 1, 2 * path + 1> {};
template <long path> struct Bomb<0, path> {};
static Bomb<40, 1> bomb;
