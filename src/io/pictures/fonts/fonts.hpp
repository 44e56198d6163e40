// The fonts of text in pictures: subsets of DejaVu Sans, compiled in (see README.md in this folder).
#pragma once

#include <span>

namespace lockstep::io::fonts {

std::span<const unsigned char> regular();
std::span<const unsigned char> bold();

}  // namespace lockstep::io::fonts
