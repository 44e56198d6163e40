// C++ exceptions for WebAssembly: the part of the Itanium C++ ABI that Debian's libc++abi for wasm32 leaves out. The
// compiler throws and catches by the engine's own instructions. This file holds the life of an exception and the search
// for its handler in the tables that the compiler writes (one entry a landing pad).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

namespace __cxxabiv1 {
struct __cxa_exception;
/// Same layout as in libc++abi: whether a handler of this type takes a thrown object, and its address then.
class __shim_type_info : public std::type_info {
 public:
  virtual ~__shim_type_info();
  virtual void noop1() const;
  virtual void noop2() const;
  virtual bool can_catch(const __shim_type_info* thrown, void*& adjusted) const = 0;
};
}  // namespace __cxxabiv1

namespace {

using Type = __cxxabiv1::__shim_type_info;
using Destructor = void* (*)(void*);  // destructors give back their object here

/// A thrown object; it lies behind its header. One thrown again through std::exception_ptr shares the first's.
struct alignas(16) Exception {
  const std::type_info* type;
  Destructor destructor;
  void* object;
  Exception* primary;  // whose object this is; itself usually
  int references;      // of a primary: exception_ptrs and secondary throws
  int handlers;        // that hold it; negative while it is thrown again from one
  Exception* outer;    // caught before it
  void* adjusted;      // the object as the handler sees it
};

Exception* caught = nullptr;
unsigned uncaught = 0;

Exception* header_of(void* object) { return static_cast<Exception*>(object) - 1; }

Exception* make_primary(void* object, const std::type_info* type, Destructor destructor) {
  Exception* const e = header_of(object);
  *e = {type, destructor, object, e, 0, 0, nullptr, object};
  return e;
}

void release(Exception* primary) {
  if (--primary->references > 0) return;
  if (primary->destructor) primary->destructor(primary->object);
  std::free(primary);
}

void discard(Exception* e) {
  Exception* const primary = e->primary;
  if (e != primary) std::free(e);
  release(primary);
}

[[noreturn]] void raise(Exception* e) {
  ++uncaught;
  __builtin_wasm_throw(0, e);
}

// ── the compiler's tables ──
class Table {
 public:
  explicit Table(const uint8_t* at) : at_(at) {}
  const uint8_t* at() const { return at_; }
  uint8_t byte() { return *at_++; }
  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t b = byte();
      value |= uint64_t(b & 0x7f) << shift;
      if (!(b & 0x80)) return value;
    }
  }
  int64_t signed_number() {
    int64_t value = 0;
    unsigned shift = 0;
    for (;;) {
      const uint8_t b = byte();
      value |= int64_t(b & 0x7f) << shift;
      shift += 7;
      if (b & 0x80) continue;
      return (b & 0x40) && shift < 64 ? value | -(int64_t(1) << shift) : value;
    }
  }

 private:
  const uint8_t* at_;
};

constexpr uint8_t kOmitted = 0xff;

/// The number of the handler at a landing pad that takes the exception; 0 for none.
int64_t find_handler(const uint8_t* tables, uintptr_t pad, Exception& e) {
  Table table(tables);
  if (table.byte() != kOmitted) std::abort();  // pads are numbered, not placed
  const uint8_t* types = nullptr;
  if (table.byte() != kOmitted) {
    const uint64_t offset = table.number();
    types = table.at() + offset;
  }
  table.byte();  // encoding of the call sites: numbers
  const uint64_t length = table.number();
  const uint8_t* const actions = table.at() + length;
  for (uintptr_t k = 0; k < pad; ++k) {
    table.number();
    table.number();
  }
  table.number();
  uint64_t action = table.number();
  if (action == 0) return 0;
  for (Table record(actions + action - 1);;) {
    const int64_t index = record.signed_number();
    if (index > 0) {
      const Type* wanted = nullptr;
      std::memcpy(&wanted, types - index * int64_t(sizeof wanted), sizeof wanted);
      void* adjusted = e.object;
      if (!wanted || wanted->can_catch(static_cast<const Type*>(e.type), adjusted)) {
        e.adjusted = adjusted;
        return index;
      }
    }
    const uint8_t* const from = record.at();
    const int64_t step = record.signed_number();
    if (step == 0) return 0;
    record = Table(from + step);
  }
}

}  // namespace

extern "C" {

// Data between a landing pad and the functions below; the compiler knows the layout.
struct LandingPad {
  uintptr_t number;
  uintptr_t tables;
  uintptr_t selector;
} __wasm_lpad_context;

/// Called by a landing pad with what was thrown.
int _Unwind_CallPersonality(void* exception) {
  __wasm_lpad_context.selector =
      uintptr_t(find_handler(reinterpret_cast<const uint8_t*>(__wasm_lpad_context.tables),
                             __wasm_lpad_context.number, *static_cast<Exception*>(exception)));
  return 0;
}
/// The compiler names it in every function that catches; landing pads call the above instead.
int __gxx_wasm_personality_v0() { std::abort(); }

void* __cxa_allocate_exception(size_t size) noexcept {
  void* const memory = std::calloc(1, sizeof(Exception) + size);
  if (!memory) std::terminate();
  return static_cast<Exception*>(memory) + 1;
}
void __cxa_free_exception(void* object) noexcept { std::free(header_of(object)); }

__cxxabiv1::__cxa_exception* __cxa_init_primary_exception(void* object, std::type_info* type,
                                                          Destructor destructor) noexcept {
  return reinterpret_cast<__cxxabiv1::__cxa_exception*>(make_primary(object, type, destructor));
}
void __cxa_throw(void* object, std::type_info* type, Destructor destructor) {
  Exception* const e = make_primary(object, type, destructor);
  e->references = 1;
  raise(e);
}

void* __cxa_get_exception_ptr(void* exception) noexcept {
  return static_cast<Exception*>(exception)->adjusted;
}
void* __cxa_begin_catch(void* exception) noexcept {
  auto* const e = static_cast<Exception*>(exception);
  e->handlers = (e->handlers < 0 ? -e->handlers : e->handlers) + 1;
  if (e != caught) {
    e->outer = caught;
    caught = e;
  }
  --uncaught;
  return e->adjusted;
}
void __cxa_end_catch() noexcept {
  Exception* const e = caught;
  if (!e) return;
  if (e->handlers < 0) {  // thrown again: the next handler takes it over
    if (++e->handlers == 0) caught = e->outer;
  } else if (--e->handlers == 0) {
    caught = e->outer;
    discard(e);
  }
}
void __cxa_rethrow() {
  Exception* const e = caught;
  if (!e) std::terminate();
  e->handlers = -e->handlers;
  raise(e);
}
unsigned __cxa_uncaught_exceptions() noexcept { return uncaught; }
bool __cxa_uncaught_exception() noexcept { return uncaught != 0; }
std::type_info* __cxa_current_exception_type() {
  return caught ? const_cast<std::type_info*>(caught->type) : nullptr;
}

// ── std::exception_ptr ──
void __cxa_increment_exception_refcount(void* object) noexcept {
  if (object) ++header_of(object)->references;
}
void __cxa_decrement_exception_refcount(void* object) noexcept {
  if (object) release(header_of(object));
}
void* __cxa_current_primary_exception() noexcept {
  if (!caught) return nullptr;
  ++caught->primary->references;
  return caught->primary->object;
}
void __cxa_rethrow_primary_exception(void* object) {
  if (!object) return;
  Exception* const primary = header_of(object);
  auto* const e = static_cast<Exception*>(std::calloc(1, sizeof(Exception)));
  if (!e) std::terminate();
  *e = {primary->type, nullptr, primary->object, primary, 0, 0, nullptr, primary->object};
  ++primary->references;
  raise(e);
}

}  // extern "C"

/// Objects of the one thread live as long as the page.
extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }
