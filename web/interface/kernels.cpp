// Kernels traced from JavaScript. The page's function runs inside of the call "trace"; its own calls append to the kernel.
#include <memory>
#include <variant>

#include "calls.hpp"
#include "ir/bindings.hpp"
#include "lockstep/ir/function.hpp"
#include "objects.hpp"

/// Runs the page's function of the trace that is being made; 0 where it failed.
extern "C" [[clang::import_module("lockstep"), clang::import_name("trace")]] uint32_t lockstep_trace(
    const char* parameters, uint32_t bytes);

namespace lockstep::web {

namespace {

/// Objects that a kernel's function holds by handles. They end with the trace, so that a later kernel cannot take them.
using Traced = std::variant<AnyVal, bindings::TracedBuffer, std::shared_ptr<AnyVar>, AnyLocal, AnyShared,
                            bindings::OpenBlock, bindings::ClosedIf>;
struct Trace {
  std::map<int64_t, Traced> all;
};
std::vector<Trace> traces;
int64_t last_traced = 0;

Trace& tracing() {
  if (traces.empty())
    throw InputError("an operation of kernels", "lockstep.js", "a function that lockstep.kernel traces");
  return traces.back();
}
int64_t keep(Traced value) {
  tracing().all.emplace(++last_traced, std::move(value));
  return last_traced;
}
template <class T>
const T& traced(const Json& handle, const char* what) {
  const auto& all = tracing().all;
  const auto found = handle.is_number_integer() ? all.find(handle.get<int64_t>()) : all.end();
  const T* value = found == all.end() ? nullptr : std::get_if<T>(&found->second);
  if (!value)
    throw InputError(std::string("not ") + what + " of this kernel", detail::builder().where(),
                     "one that its own function made");
  return *value;
}
template <class T>
const T& traced(const Json& request, const char* name, const char* what) {
  return traced<T>(member(request, name), what);
}

AnyVal number_as(Type type, const Number& number) {
  switch (number.kind) {
    case Number::Kind::floating:
      if (number.f64 != number.f64)
        throw InputError("NaN with a traced " + std::string(name(type)), detail::builder().where(),
                         "a number; bitcast of 0x7fc00000 makes a NaN that is meant");
      return AnyVal::number(type, number.f64);
    case Number::Kind::whole: return AnyVal::number(type, number.i64);
    case Number::Kind::natural: return AnyVal::number(type, number.u64);
    default: return AnyVal::number(type, number.u64 != 0);
  }
}
/// A traced value by its handle (variables as of now), or a number for `type`.
AnyVal value_of(const Json& value, Type type = Type::none) {
  if (!value.is_number_integer()) {
    const Number number = number_of(value);
    if (type == Type::none)
      throw InputError("numbers without a traced value", detail::builder().where(),
                       "at least one traced operand");
    return number_as(type, number);
  }
  const auto& all = tracing().all;
  const auto found = all.find(value.get<int64_t>());
  if (found != all.end())
    if (const auto* variable = std::get_if<std::shared_ptr<AnyVar>>(&found->second))
      return AnyVal(**variable);
  return traced<AnyVal>(value, "a value");
}
/// Operands of one type: that of the first that is traced.
std::vector<AnyVal> operands_of(const Json& request, const char* name = "operands") {
  const Json& given = member(request, name);
  if (!given.is_array() || given.size() > 8)
    throw InputError("operands", "lockstep.js", "an array of at most 8");
  Type type = Type::none;
  for (const Json& value : given)
    if (type == Type::none && value.is_number_integer()) type = value_of(value).type();
  std::vector<AnyVal> values;
  for (const Json& value : given) values.push_back(value_of(value, type));
  return values;
}
void expect_one_type(const std::string& word, const std::vector<AnyVal>& values) {
  for (const AnyVal& value : values)
    if (value.type() != values[0].type())
      throw InputError(
          word + " of " + std::string(name(values[0].type())) + " and " + std::string(name(value.type())),
          detail::builder().where(), "one type: cast converts, select chooses by a condition");
}
std::vector<AnyVal> indices_of(const Json& request, const char* name) {
  const Json& given = member(request, name);
  if (!given.is_array() || given.size() > 4)
    throw InputError("coordinates", detail::builder().where(), "at most 4");
  std::vector<AnyVal> values;
  for (const Json& value : given) values.push_back(value_of(value, Type::i32));
  return values;
}
AnyVal condition_of(const Json& request) {
  const AnyVal condition = value_of(member(request, "condition"), Type::boolean);
  if (condition.type() != Type::boolean)
    throw InputError("a condition that is a traced " + std::string(name(condition.type())),
                     detail::builder().where(), "a comparison, such as x.ne(0)");
  return condition;
}

/// A value as pages see it: handle and type.
Json made(const AnyVal& value) {
  const std::string type = value.type() == kIndexType ? "index" : std::string(name(value.type()));
  return {keep(value), type};
}

// ── the kernel itself ──

Json parameters_of(ir::Builder& builder, const Json& request) {
  Json handles = Json::array();
  const Json& given = member(request, "parameters");
  if (!given.is_array() || given.size() > 256) throw InputError("parameters", "lockstep.js", "an array");
  for (const Json& p : given) {
    const auto declared =
        bindings::declare(builder, {text(p, "kind"), text(p, "type"), int(whole(p, "rank", 0, 4))});
    handles.push_back(std::visit([](const auto& d) { return keep(d); }, declared));
  }
  return handles;
}

KernelOptions options_of(const Json& request) {
  KernelOptions options;
  const std::vector<int64_t> group = wholes(request, "group", 3);
  for (size_t k = 0; k < group.size(); ++k)
    options.group[k] = int(whole({{"group", group[k]}}, "group", 0, 1024));
  options.contract = member(request, "contract").is_boolean() && member(request, "contract").get<bool>();
  return options;
}

void mark(const Json& request) {
  const auto line = request.find("line");
  if (line != request.end() && line->is_array() && line->size() == 2 && (*line)[0].is_string() &&
      (*line)[1].is_number_unsigned())
    bindings::mark(detail::builder(), (*line)[0].get<std::string>(),
                   uint32_t(std::min<uint64_t>((*line)[1].get<uint64_t>(), UINT32_MAX)));
}

/// Its traced objects end with the scope.
struct TraceScope {
  TraceScope() { traces.emplace_back(); }
  ~TraceScope() { traces.pop_back(); }
};
struct Failed {};

Json trace(const Json& request) {
  if (traces.size() >= 8)
    throw InputError("kernels traced inside of kernels", "lockstep.js", "at most 8 levels");
  const std::string domain = text(request, "domain");
  const int rank = int(whole(request, "rank", 1, 3));
  try {
    const TraceScope scope;
    const Kernel kernel =
        Kernel::trace(text(request, "name"), domain == "groups" ? ir::Domain::groups : ir::Domain::points,
                      rank, options_of(request), [&](ir::Builder& builder) {
                        mark(request);
                        builder.function().place = builder.place();
                        const std::string handles = parameters_of(builder, request).dump();
                        if (!lockstep_trace(handles.data(), uint32_t(handles.size()))) throw Failed();
                      });
    return {{"handle", objects().kernels.add(kernel)}, {"fingerprint", ir::fingerprint(kernel.function())}};
  } catch (const Failed&) {
    return {{"failed", true}};  // the page has the error
  }
}

// ── operations ──

Json apply(const Json& request) {
  const std::string word = text(request, "word");
  const std::vector<AnyVal> values = operands_of(request);
  expect_one_type(word, values);
  if (word == "round" && values.size() == 1) return made(round(values[0]));
  if (word == "rounded" && values.size() == 1 && is_float(values[0].type())) return made(rounded(values[0]));
  if (word == "uniform" && values.size() == 1) return made(uniform(values[0]));
  return made(bindings::apply(word, values));
}

Json select_value(const Json& request) {
  const AnyVal condition = condition_of(request);
  const std::vector<AnyVal> values = operands_of(request);
  if (values.size() != 2) throw InputError("select", detail::builder().where(), "two values");
  expect_one_type("select", values);
  return made(select(condition, values[0], values[1]));
}

const bindings::TracedBuffer& parameter_of(const Json& request) {
  return traced<bindings::TracedBuffer>(request, "buffer", "a buffer");
}
std::vector<int> offsets_of(const Json& request) {
  std::vector<int> offsets;
  for (const int64_t offset : wholes(request, "offsets", 3))
    offsets.push_back(int(whole({{"offset", offset}}, "offset", INT32_MIN, INT32_MAX)));
  return offsets;
}
Json load(const Json& request) {
  const std::vector<AnyVal> at = indices_of(request, "at");
  const std::string boundary = text(request, "boundary");
  if (!request.contains("offsets")) return made(parameter_of(request).load(at, boundary, false));
  return made(parameter_of(request).load_point(
      at, offsets_of(request), bindings::boundary_named(boundary.empty() ? "clamp" : boundary), false));
}
Json store(const Json& request) {
  const bindings::TracedBuffer& buffer = parameter_of(request);
  const AnyVal value = value_of(member(request, "value"), value_type(buffer.storage()));
  const std::vector<AnyVal> at = indices_of(request, "at");
  if (request.contains("offsets"))
    buffer.store_point(at, offsets_of(request), value, false);
  else
    buffer.store(at, value, false);
  return nullptr;
}
Json atomic(const Json& request) {
  const bindings::TracedBuffer& buffer = parameter_of(request);
  return made(buffer.atomic(text(request, "op"), indices_of(request, "at"),
                            value_of(member(request, "value"), value_type(buffer.storage()))));
}

// ── variables, arrays ──

std::shared_ptr<AnyVar> variable_of(const Json& request) {
  return traced<std::shared_ptr<AnyVar>>(request, "variable", "a variable");
}
Json set_variable(const Json& request) {
  const auto variable = variable_of(request);
  const AnyVal value = value_of(member(request, "value"), variable->type());
  if (value.type() != variable->type())
    throw InputError("a traced " + std::string(name(value.type())) + " for a variable of " +
                         std::string(name(variable->type())),
                     detail::builder().where(), "a value of that type (cast converts)");
  *variable = value;
  return nullptr;
}
const AnyArray& array_of(const Json& request) {
  const Json& handle = member(request, "array");
  const auto& all = tracing().all;
  const auto found = handle.is_number_integer() ? all.find(handle.get<int64_t>()) : all.end();
  if (found != all.end())
    if (const auto* local = std::get_if<AnyLocal>(&found->second)) return *local;
  return traced<AnyShared>(handle, "an array");
}
Json new_array(const Json& request) {
  const Storage storage = bindings::storage_named(text(request, "type"));
  const int64_t count = whole(request, "count", 1, INT32_MAX);
  const Json& shared = member(request, "shared");
  return shared.is_boolean() && shared.get<bool>() ? keep(AnyShared(storage, count))
                                                   : keep(AnyLocal(storage, count));
}
Json array_load(const Json& request) {
  return made(array_of(request).load(Index(value_of(member(request, "at"), Type::i32))));
}
Json array_store(const Json& request) {
  const AnyArray& array = array_of(request);
  array.store(Index(value_of(member(request, "at"), Type::i32)),
              value_of(member(request, "value"), array.type()));
  return nullptr;
}

// ── control flow ──

Json open_for(const Json& request) {
  const int64_t step = whole(request, "step", INT32_MIN, INT32_MAX);
  std::vector<AnyVal> bounds;
  const Json& given = member(request, "bounds");
  const bool counted =
      given.is_array() && given.size() == 2 && !given[0].is_number_integer() && !given[1].is_number_integer();
  if (counted)
    for (const Json& bound : given) bounds.push_back(value_of(bound, Type::i32));
  else
    bounds = operands_of(request, "bounds");
  if (bounds.size() != 2) throw InputError("bounds of for", detail::builder().where(), "two");
  const bindings::OpenBlock block = bindings::open_for(bounds[0], bounds[1], step);
  return {{"block", keep(block)},
          {"begin", keep(bounds[0])},
          {"end", keep(bounds[1])},
          {"index", made(bindings::loop_index(bounds[0]))}};
}
Json close_for(const Json& request) {
  bindings::close_for(traced<AnyVal>(request, "begin", "a bound"), traced<AnyVal>(request, "end", "a bound"),
                      whole(request, "step", INT32_MIN, INT32_MAX),
                      traced<bindings::OpenBlock>(request, "block", "a block"));
  return nullptr;
}

/// Calls that the page makes while its function is traced: each states its line.
Call marked(Json (*call)(const Json&)) {
  return [call](const Json& request) {
    (void)tracing();
    mark(request);
    return call(request);
  };
}

void add_value_calls(Calls& calls) {
  calls["apply"] = marked(apply);
  calls["select"] = marked(select_value);
  calls["constant"] = marked([](const Json& r) {
    return made(value_of(member(r, "value"), bindings::type_named(text(r, "type"))));
  });
  calls["convert"] = marked([](const Json& r) {
    return made(value_of(member(r, "value")).convert(bindings::type_named(text(r, "type"))));
  });
  calls["bitcast"] = marked([](const Json& r) {
    return made(value_of(member(r, "value")).bitcast(bindings::type_named(text(r, "type"))));
  });
  calls["powi"] = marked([](const Json& r) {
    return made(powi(value_of(member(r, "value")), int(whole(r, "exponent", INT32_MIN, INT32_MAX))));
  });
  calls["place"] = marked(
      [](const Json& r) { return made(bindings::place(text(r, "what"), int(whole(r, "axis", 0, 2)))); });
  calls["group_reduce"] = marked(
      [](const Json& r) { return made(bindings::reduce(text(r, "how"), value_of(member(r, "value")))); });
}

void add_memory_calls(Calls& calls) {
  calls["size"] = marked([](const Json& r) {
    const bindings::TracedBuffer& buffer = parameter_of(r);
    return made(buffer.size(int(whole(r, "axis", 0, buffer.rank() - 1))));
  });
  calls["load"] = marked(load);
  calls["store"] = marked(store);
  calls["atomic"] = marked(atomic);
  calls["variable"] = marked(
      [](const Json& r) { return Json(keep(std::make_shared<AnyVar>(value_of(member(r, "value"))))); });
  calls["get"] = marked([](const Json& r) { return made(AnyVal(*variable_of(r))); });
  calls["set"] = marked(set_variable);
  calls["array"] = marked(new_array);
  calls["array_load"] = marked(array_load);
  calls["array_store"] = marked(array_store);
}

void add_flow_calls(Calls& calls) {
  calls["open_block"] = marked([](const Json&) { return Json(keep(bindings::open_block())); });
  calls["close_block"] = marked([](const Json& r) {
    bindings::close_block(traced<bindings::OpenBlock>(r, "block", "a block"));
    return Json();
  });
  calls["close_if"] = marked([](const Json& r) {
    return Json(
        keep(bindings::close_if(condition_of(r), traced<bindings::OpenBlock>(r, "block", "a block"))));
  });
  calls["open_else"] = marked([](const Json& r) {
    return Json(keep(bindings::open_else(traced<bindings::ClosedIf>(r, "closed", "an if"))));
  });
  calls["open_for"] = marked(open_for);
  calls["close_for"] = marked(close_for);
  calls["close_loop"] = marked([](const Json& r) {
    bindings::close_loop(traced<bindings::OpenBlock>(r, "block", "a block"));
    return Json();
  });
  calls["effect"] = marked([](const Json& r) { return bindings::effect(text(r, "name")), Json(); });
}

}  // namespace

void add_kernel_calls(Calls& calls) {
  add_value_calls(calls);
  add_memory_calls(calls);
  add_flow_calls(calls);
  calls["words"] = [](const Json&) { return Json(bindings::word_arities()); };
  calls["trace"] = trace;
  calls["source"] = [](const Json& r) {
    return Json(ir::print(objects().kernels.at(member(r, "kernel")).function()));
  };
  calls["free_kernel"] = [](const Json& r) { return objects().kernels.remove(member(r, "kernel")), Json(); };
}

}  // namespace lockstep::web
