#pragma once
// Catch2, whichever version there is: 3 has catch_all.hpp, 2 has one header.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
