// title: a main of its own
// base: solved
// score: 0
// says: does not compile
// needs:
int main() { return 0; }
