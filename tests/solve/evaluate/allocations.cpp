#include "allocations.hpp"

#include <cstdlib>
#include <new>

static constinit thread_local uint64_t bytes_so_far = 0;

void* operator new(std::size_t bytes) {
  bytes_so_far += bytes;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep::solve::test {

uint64_t allocated_bytes() { return bytes_so_far; }

}  // namespace lockstep::solve::test
