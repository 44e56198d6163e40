#include "calls.hpp"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <new>

namespace lockstep::web {

namespace {

Json error_of(const char* kind, const Error& e) {
  return {{"error",
           {{"kind", kind},
            {"what", e.problem()},
            {"where", e.where()},
            {"expected", e.expected()},
            {"hint", e.hint()},
            {"message", e.what()}}}};
}
InputError malformed(const char* name, const char* expected) {
  return {std::string("member ") + name, "lockstep.js", expected};
}

/// The digits of a whole number, all of them.
template <class N>
N digits(std::string_view text, int base) {
  N number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc() || end != text.data() + text.size() || text.empty())
    throw InputError("number " + std::string(text), "lockstep.js", "digits of a number of 64 bits");
  return number;
}

}  // namespace

const Json& member(const Json& request, const char* name) {
  const auto found = request.is_object() ? request.find(name) : request.end();
  if (!request.is_object() || found == request.end()) throw malformed(name, "a call with this member");
  return *found;
}
std::string text(const Json& request, const char* name) {
  const Json& value = member(request, name);
  if (!value.is_string()) throw malformed(name, "a string");
  return value.get<std::string>();
}
int64_t whole(const Json& request, const char* name, int64_t low, int64_t high) {
  const Json& value = member(request, name);
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX));
  if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high)
    throw InputError(std::string(name) + " " + value.dump(-1, ' ', true, Json::error_handler_t::replace),
                     "lockstep.js",
                     "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return value.get<int64_t>();
}
std::vector<int64_t> wholes(const Json& request, const char* name, size_t most) {
  const Json& value = member(request, name);
  if (!value.is_array() || value.size() > most)
    throw malformed(name, "an array of whole numbers that is not too long");
  std::vector<int64_t> all;
  for (const Json& item : value) all.push_back(whole({{name, item}}, name, INT64_MIN, INT64_MAX));
  return all;
}

namespace {
char* memory_at(const Json& request, int64_t bytes) {
  const int64_t address = whole(request, "address", 1, UINT32_MAX);
  if (address > int64_t(__builtin_wasm_memory_size(0)) * 65536 - bytes)
    throw InputError("an address", "lockstep.js", "one of the core's memory");
  return reinterpret_cast<char*>(uintptr_t(address));
}
}  // namespace

char* page_memory(const Json& request, int64_t bytes) {
  whole(request, "bytes", bytes, bytes);
  return memory_at(request, bytes);
}
std::string_view page_bytes(const Json& request) {
  const int64_t bytes = whole(request, "bytes", 0, INT32_MAX);
  return {memory_at(request, bytes), size_t(bytes)};
}

Number number_of(const Json& value) {
  if (value.is_boolean()) return {Number::Kind::boolean, 0, value.get<bool>(), value.get<bool>()};
  const std::string& text = value.is_string() ? value.get_ref<const std::string&>() : "";
  const std::string_view rest = std::string_view(text).substr(text.empty() ? 0 : 1);
  switch (text.empty() ? ' ' : text[0]) {
    case 'f': return {Number::Kind::floating, std::bit_cast<double>(digits<uint64_t>(rest, 16)), 0, 0};
    case 'i': return {Number::Kind::whole, 0, digits<int64_t>(rest, 10), 0};
    case 'u': return {Number::Kind::natural, 0, 0, digits<uint64_t>(rest, 10)};
    default: throw malformed("number", "a bool, or text that begins with f, i or u");
  }
}

std::string answer(const Calls& calls, const std::string& request) {
  Json reply;
  try {
    const Json parsed = Json::parse(request, nullptr, false);
    const auto found = parsed.is_object() ? calls.find(text(parsed, "call")) : calls.end();
    if (found == calls.end())
      throw InputError("an unknown call", "lockstep.js", "a call of this core: load both files of one build");
    reply = {{"result", found->second(parsed)}};
  } catch (const InputError& e) { reply = error_of("input", e); } catch (const UnsupportedError& e) {
    reply = error_of("unsupported", e);
  } catch (const DeviceError& e) { reply = error_of("device", e); } catch (const Error& e) {
    reply = error_of("internal", e);
  } catch (const std::bad_alloc&) {
    reply = error_of("device", DeviceError(DeviceFault::allocation, "memory of the page is exhausted"));
  } catch (const std::exception& e) {
    reply = error_of("input", InputError(e.what(), "lockstep.js", "a well-formed call"));
  }
  return reply.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

const Calls& all_calls() {
  static const Calls all = [] {
    Calls calls;
    add_device_calls(calls);
    add_kernel_calls(calls);
    add_case_calls(calls);
    add_residual_calls(calls);
    add_mesh_calls(calls);
    add_array_calls(calls);
    add_turbulence_calls(calls);
    add_city_calls(calls);
    add_loss_calls(calls);
    add_forecast_calls(calls);
    add_command_calls(calls);
    add_flow_commands(calls);
    add_forecast_commands(calls);
    add_solve_calls(calls);
    add_study_calls(calls);
    return calls;
  }();
  return all;
}

std::string reply;

}  // namespace

}  // namespace lockstep::web

extern "C" {

/// Memory for a request or for elements; 0 where there is none.
[[clang::export_name("lockstep_allocate")]] void* lockstep_allocate(uint32_t bytes) {
  return std::malloc(bytes);
}
[[clang::export_name("lockstep_free")]] void lockstep_free(void* memory) { std::free(memory); }

/// Answers a request of `bytes` bytes of UTF-8; gives the length of the answer, which is at lockstep_reply() until the next
/// call.
[[clang::export_name("lockstep_call")]] uint32_t lockstep_call(const char* request, uint32_t bytes) {
  std::string answered = lockstep::web::answer(lockstep::web::all_calls(), std::string(request, bytes));
  lockstep::web::reply =
      std::move(answered);  // calls nest while a kernel is traced: the outer one's answer is set last
  return uint32_t(lockstep::web::reply.size());
}
[[clang::export_name("lockstep_reply")]] const char* lockstep_reply() { return lockstep::web::reply.data(); }
}
