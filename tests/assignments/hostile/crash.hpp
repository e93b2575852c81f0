// title: crashes
// base: solved
// score: 0
// says: Segmentation fault
// needs:
// in kv_head
*(volatile int*)16 = 1;
