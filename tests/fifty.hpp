#pragma once
// Numbers of 50 digits: with them, two steps that are equal agree to 1e-45, and no tolerance can hide a wrong derivation.
// Translation units that include this are compiled with -O1.
#include <boost/multiprecision/cpp_bin_float.hpp>

namespace flashsteps {
using Fifty = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>, boost::multiprecision::et_off>;
}
