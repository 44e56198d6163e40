// Functions that kernels call.
#include <fmt/format.h>

#include <atomic>

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

uint32_t function_number(uint64_t identity, std::type_index types, const std::string& name,
                         std::span<const Type> parameters,
                         const std::function<std::vector<ir::Id>(std::span<const ir::Id>)>& body) {
  ir::Builder& caller = builder();
  const auto key = std::pair(identity, types);
  if (const auto known = caller.traced.find(key); known != caller.traced.end()) return known->second;
  const Deeper scope;
  if (depth > kDeepest)
    throw InputError(fmt::format("function {} calls itself", name), caller.where(),
                     "functions whose calls end while they are traced");
  ir::Function f;
  f.name = name;
  f.domain = ir::Domain::values;
  f.index_type = caller.function().index_type;
  f.files = caller.function().files;
  f.place = caller.place();
  {
    ir::Builder own(f);
    own.at(f.place);
    const TraceScope trace(own);
    std::vector<ir::Id> taken;
    for (Type type : parameters) {
      taken.push_back(own.emit(ir::Op::param, type, {}, f.scalars.size()));
      f.scalars.push_back({fmt::format("p{}", f.scalars.size()), type, f.place});
    }
    std::vector<ir::Id> given = body(taken);
    if (given.size() == 3)
      given.push_back(own.constant(own.type(given[0]), 0));  // wide values have 1, 2 or 4
    ir::Instruction result{ir::Op::result};
    std::copy(given.begin(), given.end(), result.args.begin());
    own.append(result);
  }
  caller.function().functions.push_back(std::move(f));
  return caller.traced[key] = uint32_t(caller.function().functions.size() - 1);
}

std::vector<ir::Id> call_function(uint32_t number, std::span<const ir::Id> values, int count) {
  ir::Builder& b = builder();
  const ir::Id call = b.call(number, values);
  if (count == 1) return {call};
  std::vector<ir::Id> components;
  for (int k = 0; k < count; ++k)
    components.push_back(b.emit(ir::Op::extract, b.type(call), {call}, uint64_t(k)));
  return components;
}

}  // namespace lockstep::detail
