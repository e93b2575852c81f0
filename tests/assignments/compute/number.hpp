#pragma once
// The number type that a file student_NN.cpp is compiled for: STUDENT_FLOAT, STUDENT_DOUBLE or STUDENT_FIFTY.
#include "student.hpp"

namespace flashsteps {
#if defined(STUDENT_FIFTY)
using Number = Fifty;
#define STUDENT_NAME "fifty"
#elif defined(STUDENT_DOUBLE)
using Number = double;
#define STUDENT_NAME "double"
#else
using Number = float;
#define STUDENT_NAME "float"
#endif
}  // namespace flashsteps
