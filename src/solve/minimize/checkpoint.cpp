#include "solve/minimize/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "core/files/atomic_file.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

constexpr uint64_t kMagic = 0x31564c53504b434cull;  // "LCKPSLV1"
constexpr uint64_t kVersion = 5;

class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(uint64_t(values.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    bytes_.insert(bytes_.end(), bytes, bytes + values.size() * sizeof(T));
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_all() {
    const uint64_t count = get<uint64_t>();
    if (count > bytes_.size() / sizeof(T)) fail();
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), take(count * sizeof(T)), count * sizeof(T));
    return values;
  }
  uint64_t get_count(uint64_t least_bytes) {
    const uint64_t count = get<uint64_t>();
    if (count > bytes_.size() / least_bytes) fail();
    return count;
  }
  [[noreturn]] void fail() const {
    throw InputError("damaged checkpoint", where_, "a complete file; remove the damaged one");
  }

 private:
  const std::byte* take(size_t count) {
    if (count > bytes_.size() - at_) fail();
    at_ += count;
    return bytes_.data() + at_ - count;
  }
  std::span<const std::byte> bytes_;
  std::string where_;
  size_t at_ = 0;
};

void put(Writer& out, const Iteration& row) {
  out.put(int64_t(row.iteration));
  for (const double v :
       {row.cost, row.cost_change, row.gradient_max, row.step_norm, row.damping, row.gain, row.seconds})
    out.put(v);
  out.put(int64_t(row.accepted)), out.put(int64_t(row.linear_iterations));
}
Iteration get_row(Reader& in) {
  Iteration row;
  row.iteration = int(in.get<int64_t>());
  for (double* v : {&row.cost, &row.cost_change, &row.gradient_max, &row.step_norm, &row.damping, &row.gain,
                    &row.seconds})
    *v = in.get<double>();
  row.accepted = in.get<int64_t>() != 0, row.linear_iterations = int(in.get<int64_t>());
  return row;
}

void put(Writer& out, const Checkpoint& part) {
  out.put(part.posed), out.put(part.settings);
  out.put(part.snapshot.state), out.put(part.snapshot.scalars);
  out.put(uint64_t(part.snapshot.vectors.size()));
  for (const auto& vector : part.snapshot.vectors) out.put(vector);
  out.put(part.initial_cost), out.put(part.initial_gradient), out.put(part.linear_iterations);
  out.put(uint64_t(part.trace.size()));
  for (const Iteration& row : part.trace) put(out, row);
  out.put(uint64_t(part.outcome.has_value()));
  if (!part.outcome) return;
  out.put(uint64_t(part.outcome->termination));
  out.put(part.outcome->final_cost), out.put(part.outcome->gradient_max);
  out.put(part.outcome->values), out.put(part.outcome->message);
}
Checkpoint get_part(Reader& in) {
  Checkpoint out;
  out.posed = in.get<Posed>(), out.settings = in.get<Hash128>();
  out.snapshot.state = in.get_all<double>(), out.snapshot.scalars = in.get_all<double>();
  const uint64_t vectors = in.get_count(sizeof(uint64_t));
  for (uint64_t k = 0; k < vectors; ++k) out.snapshot.vectors.push_back(in.get_all<double>());
  out.initial_cost = in.get<double>(), out.initial_gradient = in.get<double>();
  out.linear_iterations = in.get<int64_t>();
  const uint64_t rows = in.get_count(sizeof(int64_t));
  for (uint64_t k = 0; k < rows; ++k) out.trace.push_back(get_row(in));
  if (in.get<uint64_t>() == 0) return out;
  Outcome& outcome = out.outcome.emplace();
  const uint64_t termination = in.get<uint64_t>();
  if (termination > uint64_t(Termination::time_limit)) in.fail();
  outcome.termination = Termination(termination);
  outcome.final_cost = in.get<double>(), outcome.gradient_max = in.get<double>();
  outcome.values = in.get_all<double>();
  const std::vector<char> message = in.get_all<char>();
  outcome.message.assign(message.begin(), message.end());
  return out;
}

std::vector<Checkpoint> read_parts(const std::filesystem::path& file) {
  if (file.empty() || !std::filesystem::exists(file)) return {};
  const std::string where = file.string();
  return io::within_memory(where, [&] {
    const std::vector<std::byte> content = io::read_file(file, "a checkpoint");
    // Vectors of the parts are those of the file; each may be empty, of 8 bytes there and 24 here.
    const io::InputClaim claim(4.0 * double(content.size()), "its parts", where);
    const std::span<const std::byte> bytes = content;
    Reader head(bytes, where);
    constexpr size_t kHead = 2 * sizeof(uint64_t) + sizeof(Hash128);
    if (bytes.size() < kHead || head.get<uint64_t>() != kMagic)
      throw InputError("not a checkpoint", where, "a file that a minimisation wrote; remove it");
    if (const uint64_t version = head.get<uint64_t>(); version != kVersion)
      throw InputError(fmt::format("checkpoint of version {}", version), where,
                       fmt::format("version {}", kVersion));
    const Hash128 checksum = head.get<Hash128>();
    if (!(hash128(bytes.subspan(kHead)) == checksum)) head.fail();
    Reader in(bytes.subspan(kHead), where);
    const uint64_t count = in.get_count(sizeof(Hash128));
    std::vector<Checkpoint> parts;
    for (uint64_t k = 0; k < count; ++k) parts.push_back(get_part(in));
    return parts;
  });
}

/// Whether the same options would end where the part ended.
bool stays_ended(const Checkpoint& part, const Hash128& settings, int max_iterations) {
  if (!part.outcome) return false;
  switch (part.outcome->termination) {
    case Termination::stopped:
    case Termination::time_limit: return false;
    case Termination::max_iterations: return int(part.trace.size()) >= max_iterations;
    default: return part.settings == settings;
  }
}

}  // namespace

Posed posed(const Problem& problem, const Options& options) {
  Writer method, precision, blocks, start, limits, terms;
  const Problem::State& state = problem.state();
  method.put(uint64_t(options.method)), precision.put(uint64_t(options.precision));
  for (const SetState& set : state.sets) {
    blocks.put(set.name), blocks.put(set.manifold->manifold.name);
    blocks.put(set.count), blocks.put(int64_t(set.ambient())), blocks.put(int64_t(set.tangent()));
  }
  start.put(state.values);
  limits.put(state.fixed), limits.put(state.lower), limits.put(state.upper);
  if (!state.held.empty()) limits.put(state.held);
  for (const Batch& batch : state.batches) {
    terms.put(batch.expression->key);
    for (const Segment& segment : batch.segments) {
      terms.put(segment.count);
      terms.put(segment.blocks), terms.put(segment.data), terms.put(segment.constants);
      if (!segment.weights.empty()) terms.put(segment.weights);
      if (!segment.off.empty()) terms.put(segment.off);
    }
  }
  const auto hash = [](const Writer& out) { return hash128(out.bytes()); };
  return {hash(method), hash(precision), hash(blocks), hash(start), hash(limits), hash(terms)};
}

Hash128 settings_hash(const Options& options) {
  Writer out;
  out.put(uint64_t(options.linear)), out.put(uint64_t(options.damping));
  for (const double value : {options.function_tolerance, options.gradient_tolerance,
                             options.parameter_tolerance, options.initial_damping, options.initial_radius,
                             options.forcing, options.learning_rate, options.momentum, options.weight_decay})
    out.put(value);
  out.put(int64_t(options.max_linear_iterations)), out.put(int64_t(options.lbfgs_history));
  if (options.parts > 1) out.put(options.parts);
  for (const auto* groups : {&options.order, &options.inner_groups})
    for (const std::string& group : *groups) out.put(uint64_t(groups == &options.order)), out.put(group);
  return hash128(out.bytes());
}

CheckpointFile::CheckpointFile(const Options& options)
    : path_(options.checkpoint), parts_(read_parts(path_)), watch_(options), leads_(options.leads()) {}

std::optional<Checkpoint> CheckpointFile::next(const Posed& posed, const Hash128& settings,
                                               int max_iterations) {
  if (begun_++ >= parts_.size()) return std::nullopt;
  const Checkpoint& part = parts_[begun_ - 1];
  std::vector<const char*> differ;
  for (size_t k = 0; k < posed.size(); ++k)
    if (!(part.posed[k] == posed[k])) differ.push_back(kPosed[k]);
  if (!differ.empty())
    throw InputError(fmt::format("checkpoint of {}", fmt::join(differ, ", ")), path_.string(),
                     "the file of this minimisation; remove it to start again");
  if (int64_t(part.trace.size()) > max_iterations)
    throw InputError(fmt::format("checkpoint after {} iterations, of which {} are requested",
                                 part.trace.size(), max_iterations),
                     path_.string(), "as many iterations or more; remove it to start again");
  Checkpoint out = part;
  if (!stays_ended(part, settings, max_iterations)) {
    if (begun_ < parts_.size())
      throw InputError("checkpoint of minimisations with other options", path_.string(),
                       "the options of the run that wrote it; remove it to start again");
    out.outcome.reset();
  }
  return out;
}

void CheckpointFile::write(const Checkpoint& now) {
  if (!keeps()) return;
  // Those before it are never gone on from.
  if (parts_.size() < begun_) {
    for (Checkpoint& part : parts_) part.snapshot = {};
    parts_.emplace_back();
  }
  parts_[begun_ - 1] = now;
  if (!leads_) return;
  Writer body;
  body.put(uint64_t(parts_.size()));
  for (const Checkpoint& part : parts_) put(body, part);
  Writer head;
  head.put(kMagic), head.put(kVersion), head.put(hash128(body.bytes()));
  AtomicFile out(path_);
  out.write(head.bytes());
  out.write(body.bytes());
  out.commit();
}

}  // namespace lockstep::solve
