// Compiled where the headers of the CUDA toolkit are.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include "tests/half_toolkit_body.hpp"

std::optional<flashsteps::Conversions> flashsteps::theirs() { return conversions; }
