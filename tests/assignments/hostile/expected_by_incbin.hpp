// title: takes the expected values into the program when it is assembled
// base: starter
// score: 0
// says: does not compile
// needs: reading
asm(".pushsection .rodata\n.incbin \"@EXPECTED_6@/index.txt\"\n.popsection");
