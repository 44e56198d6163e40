#include "device/launch/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "core/environment/environment.hpp"
#include "core/numbers/half.hpp"
#include "core/reports/log.hpp"
#include "device/interp/findings.hpp"
#include "device/interp/memory.hpp"
#include "device/launch/numbers.hpp"
#include "device/state.hpp"
#include "lockstep/check.hpp"

namespace lockstep {
namespace device {

std::atomic<int64_t> check_everywhere{0};

namespace {

// Of eight bytes, over and over: as f32 and as f64 numbers that no arithmetic gives (signalling NaNs).
constexpr std::array<uint32_t, 2> kUnwritten{0x7fb1c9e3u, 0x7ff5a3d7u};

/// The interpreter that checks run on, and what they found.
struct Checks {
  Mutex mutex;  // over an interpreted launch and all below
  std::shared_ptr<Backend> interp;
  std::unordered_map<uint64_t, std::shared_ptr<Module>>
      modules;  // by kernel and form, as DeviceState::modules
  bool collect = false;
  std::vector<CheckFinding> findings;
  std::vector<UncheckedLaunches> unchecked;
  int64_t checked = 0;
  std::atomic<int64_t> turns{0};
  std::function<void(uint8_t*)> disturb;

  Backend& backend() {
    if (!interp) {
      interp = interp_backend().open(0, {});
      interp::collect_findings(*interp, true);
    }
    return *interp;
  }
  /// Collected: a line, once for each kernel, kind and place. Else throws.
  void found(const CheckFinding& finding, const std::string& where) {
    const std::lock_guard lock(mutex);
    auto same = std::find_if(findings.begin(), findings.end(), [&](const CheckFinding& f) {
      return f.kind == finding.kind && f.kernel == finding.kernel && f.place == finding.place;
    });
    if (same == findings.end()) {
      same = findings.insert(findings.end(), finding);
      if (collect) logging::line("check: " + finding.text);
    }
    ++same->launches;
    if (!collect)
      throw CheckError(
          finding.text, where,
          finding.kind == "differing_bits" ? "the interpreter's bits" : "a kernel without faults");
  }
  void not_checked(const std::string& what, const std::string& why) {
    const std::lock_guard lock(mutex);
    for (UncheckedLaunches& known : unchecked)
      if (known.what == what && known.why == why) {
        ++known.count;
        return;
      }
    unchecked.push_back({what, why, 1});
    logging::line(fmt::format("check: {} not checked: {}", what, why));
  }
};
Checks& checks() {
  static auto* const all = new Checks;  // devices may outlive static objects
  return *all;
}

/// Whether other orders of its atomic operations give other results.
bool order_shows(const ir::Function& f) {
  std::vector<bool> used(f.instructions.size());
  for (const ir::Instruction& i : f.instructions)
    for (const ir::Id id : i.args)
      if (id != ir::kNone) used[id] = true;
  for (size_t id = 0; id < f.instructions.size(); ++id) {
    const ir::Instruction& i = f.instructions[id];
    if (i.op != ir::Op::atomic) continue;
    const ir::AtomicOp op = ir::AtomicTarget::from_bits(i.imm).op;
    const bool commutes = op != ir::AtomicOp::exchange && op != ir::AtomicOp::compare_exchange;
    const bool rounds = op == ir::AtomicOp::add && (i.type == Type::f32 || i.type == Type::f64);
    if (used[id] || !commutes || rounds) return true;
  }
  return false;
}

/// Near which the kernel writes a buffer.
ir::Place place_of_store(const ir::Function& f, size_t buffer) {
  for (const ir::Instruction& i : f.instructions) {
    const auto target = ir::AtomicTarget::from_bits(i.imm);
    const bool stores = (i.op == ir::Op::store && i.imm == buffer) ||
                        (i.op == ir::Op::atomic && !target.shared && target.array == buffer);
    if (stores && i.place) return i.place;
  }
  return f.place;
}

bool is_nan(Storage storage, const uint8_t* at) {
  const auto as = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (storage) {
    case Storage::f32: return std::isnan(as(float()));
    case Storage::f64: return std::isnan(as(double()));
    case Storage::f16: return std::isnan(f16_to_f32(as(uint16_t())));
    case Storage::bf16: return std::isnan(bf16_to_f32(as(uint16_t())));
    default: return false;
  }
}

}  // namespace

void read_check_variable() {
  static const bool read = [] {
    const char* text = environment::text("LOCKSTEP_CHECK");
    if (const int64_t every = text ? std::atoll(text) : 0; every > 0) check_everywhere = every;
    return true;
  }();
  (void)read;
}

void mark_unwritten(Backend& backend, Memory& memory, int64_t bytes) {
  if (backend.info().kind == DeviceKind::interp || recording_now()) return;
  std::vector<uint32_t> words(size_t(bytes + 7) / 8 * 2);
  for (size_t k = 0; k < words.size(); ++k) words[k] = kUnwritten[k % 2];
  backend.synchronize_all();
  backend.upload(nullptr, memory, 0, words.data(), bytes);
  backend.synchronize_all();
}

void note_unchecked_graph(const Backend& backend, bool recorded_before) {
  if (backend.info().kind == DeviceKind::interp) return;
  checks().not_checked(
      fmt::format("graphs of {}", backend.info().name),
      recorded_before ? "recorded before the checks began" : "launches of a graph are checked on cpu only");
}

void disturb_checked_results(std::function<void(uint8_t*)> disturb) { checks().disturb = std::move(disturb); }

CheckedLaunch::CheckedLaunch(DeviceState& device, Kernel kernel, KernelForm form,
                             std::span<const Binding> buffers, std::span<const uint64_t> scalars,
                             const std::array<int64_t, 3>& extent, const std::source_location& line)
    : device_(device),
      kernel_(std::move(kernel)),
      form_(form),
      buffers_(buffers.begin(), buffers.end()),
      scalars_(scalars.begin(), scalars.end()),
      extent_(extent),
      line_(line) {}

std::string CheckedLaunch::launched() const { return near_text(line_, ""); }

bool CheckedLaunch::due() const {
  if (device_.info.kind == DeviceKind::interp) return false;
  const int64_t own = device_.backend->check_every, all = check_everywhere, every = own ? own : all;
  if (every == 0 || checks().turns++ % every != 0) return false;
  if (native_form(kernel_)) {
    checks().not_checked("kernel " + kernel_.name(), "a native kernel, which only its device runs");
    return false;
  }
  return true;
}

/// Copies with the same offsets within each memory, so that what overlaps there overlaps here.
void CheckedLaunch::copy_inputs() {
  parts_.clear();
  for (const Binding& b : buffers_) {
    if (!b.memory || b.span_bytes == 0) continue;
    Part& part = parts_.try_emplace(b.memory, Part{b.offset_bytes, 0, nullptr}).first->second;
    part.begin = std::min(part.begin, b.offset_bytes) / 16 * 16;
    part.end = std::max(part.end, b.offset_bytes + b.span_bytes);
  }
  device_.backend->synchronize_all();
  for (auto& [memory, part] : parts_) {
    const int64_t bytes = part.end - part.begin;
    std::vector<uint8_t> held(static_cast<size_t>(bytes));
    device_.backend->download(nullptr, *memory, part.begin, held.data(), bytes);
    part.copy = checks().backend().allocate(bytes);
    checks().backend().upload(nullptr, *part.copy, 0, held.data(), bytes);
    uint8_t* const initialised = static_cast<interp::InterpMemory&>(*part.copy).initialised();
    for (size_t at = 0; at + 4 <= held.size(); at += 4)
      if (std::memcmp(&held[at], &kUnwritten[at / 4 % 2], 4) == 0) std::memset(initialised + at, 0, 4);
  }
}

void CheckedLaunch::interpret() {
  Backend& interp = checks().backend();
  const ir::Function& f = function();
  const uint64_t key = kernel_.id() * 4 + (form_.index == Type::i64 ? 1 : 0) + (form_.long_axes ? 2 : 0);
  std::shared_ptr<Module>& module = checks().modules[key];
  if (!module) module = interp.compile(f, {});
  std::vector<Binding> buffers = buffers_;
  for (Binding& b : buffers) {
    const auto part = parts_.find(b.memory);
    b.memory = part == parts_.end() ? nullptr : part->second.copy.get();
    if (b.memory) b.offset_bytes -= part->second.begin;
  }
  const std::shared_ptr<Memory> nothing = interp.allocate(16);
  for (Binding& b : buffers)
    if (!b.memory) b.memory = nothing.get(), b.offset_bytes = 0;
  Dispatch dispatch;
  dispatch.module = module.get();
  dispatch.buffers = buffers;
  dispatch.scalars = scalars_;
  const bool points = f.domain == ir::Domain::points;
  for (size_t a = 0; a < 3; ++a) {
    dispatch.extent[a] = extent_[a];
    dispatch.count[a] = points ? (extent_[a] + module->group[a] - 1) / module->group[a] : extent_[a];
  }
  interp.dispatch(dispatch);
}

bool CheckedLaunch::before() {
  if (numbers_) scalars_ = numbers_->launches[launch_].bits;
  std::vector<interp::Finding> findings;
  {
    const std::lock_guard lock(checks().mutex);
    copy_inputs();
    interp::clear_findings(checks().backend());
    interpret();
    findings = interp::findings(checks().backend());
    ++checks().checked;
  }
  faulty_ = !findings.empty();
  bool outside = false;
  const std::string line = launched();
  for (const interp::Finding& f : findings) {
    outside |= f.kind == interp::FindingKind::out_of_bounds || f.kind == interp::FindingKind::misaligned;
    const std::string text = f.text() + (line.empty() ? "" : ", launched near " + line);
    checks().found({std::string(name(f.kind)), f.kernel, f.source, line, text, 0},
                   fmt::format("kernel {}{}{}", f.kernel, f.source.empty() ? "" : ", near ", f.source));
  }
  if (outside) put_results();
  return !outside;
}

bool CheckedLaunch::has_results(size_t buffer) const {
  const ir::Function& f = function();
  return f.buffers[buffer].access != ir::Access::read && buffers_[buffer].span_bytes > 0 &&
         buffer < f.argument_buffers();
}

void CheckedLaunch::put_results() {
  for (auto& [memory, part] : parts_) {
    bool written = false;
    for (size_t b = 0; b < buffers_.size(); ++b) written |= buffers_[b].memory == memory && has_results(b);
    if (!written) continue;
    const uint8_t* data = static_cast<interp::InterpMemory&>(*part.copy).data();
    device_.backend->upload(nullptr, *memory, part.begin, data, part.end - part.begin);
  }
  device_.backend->synchronize_all();
}

bool CheckedLaunch::comparable() const {
  const DeviceKind kind = device_.info.kind;
  if (faulty_ || device_.options.numerics != Numerics::exact) return false;
  return (kind == DeviceKind::cpu || kind == DeviceKind::cuda) && !order_shows(function());
}

void CheckedLaunch::after(Queue* queue) {
  if (comparable()) {
    device_.backend->synchronize(queue);
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (!has_results(b)) continue;
      const Part& part = parts_.at(buffers_[b].memory);
      std::vector<uint8_t> got(static_cast<size_t>(buffers_[b].span_bytes));
      device_.backend->download(queue, *buffers_[b].memory, buffers_[b].offset_bytes, got.data(),
                                buffers_[b].span_bytes);
      if (checks().disturb) checks().disturb(got.data());
      compare_buffer(b, got, part);
    }
  }
  parts_.clear();
}

void CheckedLaunch::compare_buffer(size_t buffer, const std::vector<uint8_t>& got, const Part& part) const {
  const Binding& b = buffers_[buffer];
  const ir::Function& f = function();
  const ir::BufferParam& param = f.buffers[buffer];
  const auto size = static_cast<size_t>(size_of(param.storage));
  const uint8_t* expected =
      static_cast<interp::InterpMemory&>(*part.copy).data() + (b.offset_bytes - part.begin);
  int64_t differing = 0;
  std::string first;
  std::array<int64_t, 4> at{}, shape{1, 1, 1, 1};
  for (int a = 0; a < param.rank; ++a) shape[size_t(a)] = b.shape[size_t(a)];
  for (at[0] = 0; at[0] < shape[0]; ++at[0])
    for (at[1] = 0; at[1] < shape[1]; ++at[1])
      for (at[2] = 0; at[2] < shape[2]; ++at[2])
        for (at[3] = 0; at[3] < shape[3]; ++at[3]) {
          int64_t element = 0;
          for (int a = 0; a < param.rank; ++a) element += at[size_t(a)] * b.strides[size_t(a)];
          const uint8_t* const x = &got[size_t(element) * size];
          const uint8_t* const y = expected + size_t(element) * size;
          if (std::memcmp(x, y, size) == 0 || (is_nan(param.storage, x) && is_nan(param.storage, y)))
            continue;
          if (differing++ == 0)
            first = fmt::format("({})", fmt::join(at.begin(), at.begin() + param.rank, ", "));
        }
  if (differing == 0) return;
  const ir::Place place = place_of_store(f, buffer);
  const std::string line = launched();
  checks().found(
      {"differing_bits", kernel_.name(), ir::place_text(f, place), line,
       fmt::format(
           "kernel {}: {} elements of {} differ in their bits between {} and the interpreter, first {}{}",
           kernel_.name(), differing, param.name, device_.info.name, first,
           line.empty() ? "" : ", launched near " + line),
       0},
      ir::where_of(f, place));
}

}  // namespace device

void check_launches(int64_t every) {
  if (every < 0) throw InputError(fmt::format("every {} launches", every), "check_launches", "0 or more");
  device::check_everywhere = every;
}
void check_launches(const Device& device, int64_t every) {
  if (every < 0) throw InputError(fmt::format("every {} launches", every), "check_launches", "0 or more");
  device.backend().check_every = every;
}
int64_t checked_every() {
  device::read_check_variable();
  return device::check_everywhere;
}

void collect_check_findings(bool collect) {
  const std::lock_guard lock(device::checks().mutex);
  device::checks().collect = collect;
}
std::vector<CheckFinding> check_findings() {
  const std::lock_guard lock(device::checks().mutex);
  return device::checks().findings;
}
std::vector<UncheckedLaunches> unchecked_launches() {
  const std::lock_guard lock(device::checks().mutex);
  return device::checks().unchecked;
}
int64_t checked_launches() {
  const std::lock_guard lock(device::checks().mutex);
  return device::checks().checked;
}
void clear_check_findings() {
  const std::lock_guard lock(device::checks().mutex);
  device::checks().findings.clear();
  device::checks().unchecked.clear();
  device::checks().checked = 0;
  device::checks().turns = 0;
}

}  // namespace lockstep
