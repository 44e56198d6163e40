// LLVM's static library calls arc4random, which glibc has from 2.36 on. This definition keeps what is linked with LLVM
// running on glibc 2.35.
#include <sys/random.h>

#include <cstdlib>

extern "C" [[gnu::visibility("hidden")]] unsigned arc4random() noexcept {
  unsigned bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits)
    std::abort();  // as glibc does; so few bytes come whole
  return bits;
}
