// Ranks that work on one problem: processes under mpirun or Slurm, or threads of one process with one device each.
//
//   parallel::run_ranks(4, {}, [](const parallel::Group& group) {
//     std::vector<double> parts = …;                       // of parallel::share(64, group): n numbers a part
//     const std::vector<double> total = group.sum<double>(64, parts);   // the same bits for any number of ranks
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::parallel {

class Transport;

/// Ranks disagree, do not respond or lack devices.
class GroupError : public InputError {
 public:
  using InputError::InputError;
  /// Thrown by every rank of the group in the same call, so that none waits for another.
  GroupError& on_every_rank() {
    everywhere_ = true;
    return *this;
  }
  bool everywhere() const { return everywhere_; }
  GroupError& with_hint(std::string hint) {
    InputError::with_hint(std::move(hint));
    return *this;
  }

 private:
  bool everywhere_ = false;
};

/// The parts [begin, end) of the work.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

struct GroupOptions {
  double wait_limit_s =
      600;  ///< seconds without a response from a rank, after which a wait throws GroupError
};

using Bytes = std::vector<std::byte>;
template <class T>
  requires std::is_trivially_copyable_v<T>
Bytes bytes_of(std::span<const T> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return {bytes.begin(), bytes.end()};
}
inline Bytes bytes_of(std::string_view text) { return bytes_of(std::span<const char>(text)); }
/// Appends the numbers of type T that `from` contains to `to`.
template <class T>
  requires std::is_trivially_copyable_v<T>
void append_numbers(std::vector<T>& to, const Bytes& from) {
  const size_t before = to.size(), count = from.size() / sizeof(T);
  to.resize(before + count);
  if (count > 0) std::memcpy(&to[before], from.data(), count * sizeof(T));
}
inline std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// A contiguous buffer that is sent to or received from a rank.
struct Slice {
  int rank;
  Buffer buffer;
};

/// A cheap handle. Collective calls are made by every rank, in the same order; each wait has a limit (GroupError).
/// Buffers are sent through NCCL if every rank has its own CUDA device, otherwise through host memory.
class Group {
 public:
  /// A group of one rank, without a transport.
  Group();
  Group(std::unique_ptr<Transport> transport, const GroupOptions& options);

  int rank() const;
  int size() const;
  bool leads() const { return rank() == 0; }
  /// Number of this rank among the ranks of this host, and their count.
  int local_rank() const;
  int local_size() const;
  /// "one process", "threads" or "MPI (Open MPI v4.1.4)".
  std::string transport() const;
  const GroupOptions& options() const;

  void barrier() const;
  /// Copies the root's bytes to every rank.
  void broadcast(Bytes& data, int root = 0) const;
  /// The bytes of every rank, in the order of ranks.
  std::vector<Bytes> all_gather(Bytes mine) const;
  /// The same on rank 0. The other ranks get an empty result and continue without waiting.
  std::vector<Bytes> gather(Bytes mine) const;
  /// `to[r]` is sent to rank r; the result contains what each rank sent here.
  std::vector<Bytes> all_to_all(std::vector<Bytes> to) const;
  /// The data of the neighbours below (rank - 1) and above (rank + 1), cyclic if periodic; empty where there is none.
  std::pair<Bytes, Bytes> exchange_halos(Bytes to_below, Bytes to_above, bool periodic = false) const;
  /// Throws GroupError on every rank if the texts are not equal. The message names `what` and the ranks that differ.
  void expect_same(std::string_view what, std::string_view text) const;

  /// Element-wise sums of `parts` contributions of equal length. They are added along a binary tree over the numbers of
  /// the parts, so the bits do not depend on the number of ranks. `mine` contains the contributions of
  /// share(parts, group), one after the other. T: float or double.
  template <class T>
  std::vector<T> sum(int64_t parts, std::span<const T> mine) const;
  template <class T>
  std::vector<T> sum(int64_t parts, const std::vector<T>& mine) const {
    return sum(parts, std::span<const T>(mine));
  }
  /// The same on a device: rows of `mine` (parts of this rank, n) of f32 or f64; the sums are written to `total` (n).
  void sum(const Device& device, int64_t parts, const Buffer& mine, const Buffer& total) const;
  /// Sends and receives buffers concurrently and waits for completion. Buffers between the same two ranks arrive in
  /// order.
  void exchange(const Device& device, std::span<const Slice> sends, std::span<const Slice> receives) const;
  /// The same without blocking the host. Work launched afterwards on the device runs after the exchange. Call
  /// finish_exchange() before the host waits for that work, because only finish_exchange() detects a failed rank.
  void begin_exchange(const Device& device, std::span<const Slice> sends,
                      std::span<const Slice> receives) const;
  void finish_exchange() const;
  /// Transport of buffers of this device: "NCCL 2.28.9" or "host memory (reason)". Collective.
  std::string device_link(const Device& device) const;

  struct State;
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Rank 0's numbers, on every rank. Collective, as is numbers_of_all.
template <class T>
std::vector<T> numbers_of_lead(const Group& group, const std::vector<T>& numbers) {
  Bytes bytes = bytes_of(std::span<const T>(numbers));
  group.broadcast(bytes);
  std::vector<T> lead;
  append_numbers(lead, bytes);
  return lead;
}
/// The numbers of all ranks, in their order, on every rank; ranks may have different counts.
template <class T>
std::vector<T> numbers_of_all(const Group& group, const std::vector<T>& mine) {
  std::vector<T> all;
  for (const Bytes& bytes : group.all_gather(bytes_of(std::span<const T>(mine)))) append_numbers(all, bytes);
  return all;
}

/// The range of parts of a rank: parts are distributed evenly, in order.
Range share(int64_t parts, int rank, int size);
inline Range share(int64_t parts, const Group& group) { return share(parts, group.rank(), group.size()); }

/// Numbers 0 … count - 1, each assigned to one rank in the order of requests. Created and finished by every rank.
class WorkQueue {
 public:
  /// `on_parts` is called on rank 0 with the numbers that ranks pass to report().
  WorkQueue(const Group& group, int64_t count, std::function<void(int parts)> on_parts = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  /// The next number for this rank, or nothing once all are assigned. Thread-safe.
  std::optional<int64_t> next();
  /// Reports progress, which also counts as a response. Thread-safe.
  void report(int parts);
  /// Waits until every rank has finished its numbers. Throws GroupError if a rank does not respond.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The launcher's group: the MPI ranks if mpirun or srun started this process, otherwise one rank. Throws
/// UnsupportedError if there is a launcher whose MPI library cannot be used.
Group launched(const GroupOptions& options = {});
/// Whether a launcher started several processes, with rank and size.
struct Launch {
  std::string launcher;  // empty: none
  int rank = 0, size = 1;
};
Launch launch_of_environment();
/// Waits for the other processes and ends MPI. Call it before main() returns.
void end_launch();
/// Ends the processes of all other ranks, which would otherwise wait for this one. For a process that failed alone.
void abort_launch(int exit_code) noexcept;

/// Runs `work` once per rank, each in its own thread. A failure ends the waits of the other ranks, and the first one is
/// thrown.
void run_ranks(int ranks, const GroupOptions& options, const std::function<void(const Group&)>& work);

/// The name of this rank's device. `names` is a list as for --device; with cuda, cuda:all or auto, ranks of one host use
/// different CUDA devices. Collective. Throws GroupError for more ranks than devices unless `share_devices` is true.
std::string device_of_rank(const Group& group, const std::string& names, bool share_devices);
/// Whether a list of devices requests all devices of a kind ("cuda:all"), and the number of CUDA devices.
bool asks_all(std::string_view names);
int cuda_devices();

}  // namespace lockstep::parallel
