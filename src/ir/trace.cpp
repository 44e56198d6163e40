// The trace that a thread is in, and the values that belong to it.
#include <fmt/format.h>

#include <array>
#include <atomic>

#include "lockstep/error.hpp"
#include "lockstep/kernel/value.hpp"

namespace lockstep::detail {

namespace {

thread_local ir::Builder* current_builder = nullptr;
thread_local uint32_t current_trace = 0;  // 0: none

/// Names of the last traces of this thread, for messages.
struct TraceName {
  uint32_t trace = 0;
  std::string name;
};
thread_local std::array<TraceName, 64> trace_names;

std::string kernel_of(uint32_t trace) {
  const TraceName& known = trace_names[trace % trace_names.size()];
  return known.trace == trace && trace != 0 ? fmt::format("kernel {}", known.name) : "another kernel";
}
void check_trace(uint32_t trace, const char* what) {
  if (trace != current_trace || trace == 0)
    throw InputError(fmt::format("{} of {}", what, kernel_of(trace)),
                     current_trace ? current_builder->where() : "outside of a kernel",
                     current_trace && current_builder->function().domain == ir::Domain::values
                         ? "parameters of the function and arrays that it declares, or a plain C++ function, "
                           "which is inlined"
                         : "values, arrays, buffers and points of the kernel that is being traced");
}
uint32_t current_block() { return current_builder ? current_builder->current() : 0; }

}  // namespace

ir::Builder& builder() {
  if (!current_builder)
    throw InputError("a kernel expression outside of a kernel", "lockstep::kernel",
                     "Val, Var and functions of them inside the traced lambda only");
  return *current_builder;
}

TraceScope::TraceScope(ir::Builder& builder) : outer_(current_builder), outer_trace_(current_trace) {
  static std::atomic<uint32_t> next{1};
  current_builder = &builder;
  current_trace = next++;
  trace_names[current_trace % trace_names.size()] = {current_trace, builder.function().name};
}
TraceScope::~TraceScope() {
  current_builder = outer_;
  current_trace = outer_trace_;
}

OfTrace::OfTrace() : trace_(current_trace) {}
void OfTrace::check(const char* what) const { check_trace(trace_, what); }

Traced::Traced(ir::Id id) : id_(id), trace_(current_trace), block_(current_block()) {}
Traced::Traced(const Traced& other) : id_(other.id_), trace_(other.trace_), block_(current_block()) {}

Traced& Traced::operator=(const Traced& other) {
  const uint32_t block = current_block();
  if (empty() || trace_ != current_trace)
    block_ = block;
  else if (block > block_)
    throw InputError("a Val created outside of an if_ or a loop, and assigned inside",
                     current_builder->where(),
                     "a Var for variables that branches and iterations change, or a Val created inside");
  id_ = other.id_;
  trace_ = other.trace_;
  return *this;
}

ir::Id Traced::id() const {
  if (empty()) throw InputError("an empty value", kernel_of(current_trace), "a value");
  check_trace(trace_, "a value");
  return id_;
}

}  // namespace lockstep::detail
