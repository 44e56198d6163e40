// Lengths with other factors than 2, 3, 5 and 7: a transform of n points as a convolution of a length that is
// a power of two, with j k = (j^2 + k^2 - (j - k)^2) / 2.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::primitives::fft {

/// Length of the convolution: the power of two not below 2 n - 1.
int64_t bluestein_length(int64_t n);
/// exp(-pi i j^2 / n), j < n; real and imaginary parts in turn.
template <class T>
std::vector<T> bluestein_chirp(int64_t n);
/// Transform of the conjugate chirp wrapped around the convolution's length, divided by that length.
template <class T>
std::vector<T> bluestein_filter(int64_t n);

}  // namespace lockstep::primitives::fft
