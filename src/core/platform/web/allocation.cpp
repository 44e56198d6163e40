// operator new that throws: that of Debian's libc++ for wasm32, compiled without exceptions, aborts where memory runs out.
#include <cstdlib>
#include <new>

namespace {

void* allocated(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* aligned(std::size_t size, std::align_val_t alignment) {
  const auto unit = std::size_t(alignment);
  const std::size_t whole = (size + unit - 1) / unit * unit;
  return allocated(whole < size ? nullptr : std::aligned_alloc(unit, whole ? whole : unit));
}

}  // namespace

void* operator new(std::size_t size) { return allocated(std::malloc(size ? size : 1)); }
void* operator new[](std::size_t size) { return allocated(std::malloc(size ? size : 1)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return aligned(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return aligned(size, alignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
