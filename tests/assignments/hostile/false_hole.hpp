// title: says that a task is not done which does not exist
// base: solved
// score: 0
// says: which does not exist
// needs:
// in kv_head
if (h == 0) todo("2");
