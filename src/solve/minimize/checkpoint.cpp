#include "solve/minimize/checkpoint.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "core/atomic_file.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

constexpr uint64_t kMagic = 0x31564c53504b434cull;  // "LCKPSLV1"
constexpr uint64_t kVersion = 2;

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
    throw InputError("damaged checkpoint", where_, "a whole file; remove it");
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

}  // namespace

Hash128 fingerprint(const Problem& problem, const Options& options) {
  Writer out;
  const Problem::State& state = problem.state();
  out.put(uint64_t(options.method)), out.put(uint64_t(options.precision));
  for (const SetState& set : state.sets) {
    out.put(set.name), out.put(set.manifold->manifold.name);
    out.put(set.count), out.put(int64_t(set.ambient())), out.put(int64_t(set.tangent()));
  }
  out.put(state.fixed), out.put(state.lower), out.put(state.upper);
  for (const Batch& batch : state.batches) {
    out.put(batch.topology->key);
    for (const Segment& segment : batch.segments) {
      out.put(segment.count);
      out.put(segment.blocks), out.put(segment.data), out.put(segment.constants);
    }
  }
  return hash128(out.bytes());
}

void write_checkpoint(const std::filesystem::path& file, const Hash128& fingerprint,
                      const Checkpoint& checkpoint) {
  Writer body;
  body.put(fingerprint);
  body.put(checkpoint.snapshot.state), body.put(checkpoint.snapshot.scalars);
  body.put(uint64_t(checkpoint.snapshot.vectors.size()));
  for (const auto& vector : checkpoint.snapshot.vectors) body.put(vector);
  body.put(checkpoint.initial_cost), body.put(checkpoint.linear_iterations);
  body.put(uint64_t(checkpoint.trace.size()));
  for (const Iteration& row : checkpoint.trace) put(body, row);
  Writer head;
  head.put(kMagic), head.put(kVersion), head.put(hash128(body.bytes()));
  AtomicFile out(file);
  out.write(head.bytes());
  out.write(body.bytes());
  out.commit();
}

std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& file, const Hash128& expected) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  const std::string where = file.string();
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream && !stream.eof()) throw InputError("checkpoint", where, "a readable file");
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
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
  if (!(in.get<Hash128>() == expected))
    throw InputError("checkpoint of another problem, method or precision", where,
                     "the file of this minimisation; remove it to start anew");
  Checkpoint out;
  out.snapshot.state = in.get_all<double>(), out.snapshot.scalars = in.get_all<double>();
  const uint64_t vectors = in.get_count(sizeof(uint64_t));
  for (uint64_t k = 0; k < vectors; ++k) out.snapshot.vectors.push_back(in.get_all<double>());
  out.initial_cost = in.get<double>(), out.linear_iterations = in.get<int64_t>();
  const uint64_t rows = in.get_count(sizeof(int64_t));
  for (uint64_t k = 0; k < rows; ++k) out.trace.push_back(get_row(in));
  return out;
}

}  // namespace lockstep::solve
