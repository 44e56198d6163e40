// Functions that kernels call.
#include <fmt/format.h>

#include <atomic>

#include "ir/with_index.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel/function.hpp"

namespace lockstep::detail {

namespace {

constexpr int kDeepest = 64;
thread_local int depth = 0;  // of functions that are being traced

struct Deeper {
  Deeper() { ++depth; }
  ~Deeper() { --depth; }
  Deeper(const Deeper&) = delete;
};

}  // namespace

uint64_t new_function_identity() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

namespace {

constexpr uint32_t kInPlace = ~uint32_t(0);  // of a function that is traced at each call

ir::Function trace_function(const FunctionTrace& function, ir::Builder& caller, const ir::Function& kernel) {
  ir::Function f;
  f.name = function.name;
  f.domain = ir::Domain::values;
  f.index_type = kernel.index_type;
  f.contract = kernel.contract;
  f.files = kernel.files;
  f.place = caller.place();
  ir::Builder own(f);
  own.at(f.place);
  const TraceScope trace(own);
  std::vector<ir::Id> taken;
  for (Type type : function.parameters) {
    taken.push_back(own.emit(ir::Op::param, type, {}, f.scalars.size()));
    f.scalars.push_back({fmt::format("p{}", f.scalars.size()), type, f.place});
  }
  std::vector<ir::Id> given = function.body(taken);
  if (given.size() == 3) given.push_back(own.constant(own.type(given[0]), 0));  // wide values have 1, 2 or 4
  ir::Instruction result{ir::Op::result};
  std::copy(given.begin(), given.end(), result.args.begin());
  own.append(result);
  for (const auto& [key, number] : own.traced)
    if (number == kInPlace) caller.traced.emplace(key, number);  // and need not be tried again
  return f;
}

/// The number of a function in the kernel that is traced now, or kInPlace: functions of the IR have no arrays.
uint32_t number_of(const FunctionTrace& function) {
  ir::Builder& caller = builder();
  const auto key = std::pair(function.identity, function.types);
  if (const auto known = caller.traced.find(key); known != caller.traced.end()) return known->second;
  const Deeper scope;
  if (depth > kDeepest)
    throw InputError(fmt::format("function {} calls itself", function.name), caller.where(),
                     "functions whose calls end while they are traced");
  ir::Function& kernel = caller.function();
  ir::Function f = trace_function(function, caller, kernel);
  if (!f.locals.empty()) {
    ir::verify(ir::with_index(
        f, Type::i32));  // what belongs to the kernel is refused before the body is traced in it
    return caller.traced[key] = kInPlace;
  }
  kernel.functions.push_back(std::move(f));
  return caller.traced[key] = uint32_t(kernel.functions.size() - 1);
}

/// The body in the kernel itself. As with other functions, no product and sum become one fma across its border.
std::vector<ir::Id> call_in_place(const FunctionTrace& function, std::span<const ir::Id> values) {
  ir::Builder& b = builder();
  const auto apart = [&](ir::Id id) { return is_float(b.type(id)) ? b.keep(ir::Op::rounded, id) : id; };
  const ir::Place place = b.place();
  std::vector<ir::Id> taken;
  for (const ir::Id id : values) taken.push_back(apart(id));
  std::vector<ir::Id> given = function.body(taken);
  for (ir::Id& id : given) id = apart(id);
  b.at(place);
  return given;
}

}  // namespace

std::vector<ir::Id> call_function(const FunctionTrace& function, std::span<const ir::Id> values, int count) {
  const uint32_t number = number_of(function);
  if (number == kInPlace) return call_in_place(function, values);
  ir::Builder& b = builder();
  const ir::Id call = b.call(number, values);
  if (count == 1) return {call};
  std::vector<ir::Id> components;
  for (int k = 0; k < count; ++k)
    components.push_back(b.emit(ir::Op::extract, b.type(call), {call}, uint64_t(k)));
  return components;
}

}  // namespace lockstep::detail
