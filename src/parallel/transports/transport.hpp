// Messages between ranks. Messages of one sender and tag arrive in order; others in any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lockstep/parallel.hpp"

namespace lockstep::parallel {

/// The purpose of a message; messages of each have an order of their own.
enum class Tag : int {
  barrier = 1,
  broadcast,
  gather,
  gather_to_lead,
  halo,
  buffers,
  ask,
  answer,
  report,
  result
};

struct Message {
  int from = 0;
  Bytes data;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Begins to send; safe from several threads.
  virtual void send(int to, Tag tag, Bytes data) = 0;
  /// A message of a rank, or of any rank where `from` is negative, if one has arrived. Throws where the group has failed.
  virtual std::optional<Message> poll(int from, Tag tag) = 0;
  /// The same after a wait; nothing where none has arrived for `limit_s`. Polls unless the transport can block.
  virtual std::optional<Message> wait(int from, Tag tag, double limit_s);
  /// Whether all that was sent has left this rank's memory.
  virtual bool all_sent() = 0;
};

/// A group's transport with its limit.
struct Group::State {
  std::unique_ptr<Transport> transport;
  GroupOptions options;
  int local_rank = 0, local_size = 1;
  std::shared_ptr<class DeviceLink> link;
  std::string link_device, link_why;  // of which device the link is; why it is host memory

  /// Throws GroupError once the limit has passed; `who`: the rank that is waited for, negative: any.
  Message receive(int from, Tag tag);
};

/// Ends a group for all its handles: their later messages are errors.
void end_group(const Group& group);

/// Values that have to be equal on every rank.
struct Common {
  std::string_view what;  // in plural
  std::string text;
};
/// Throws GroupError on every rank where a rank has found a `fault`, and else where texts are not equal. Collective.
void expect_agreement(const Group& group, std::span<const Common> all, std::string_view fault);

/// Waits with growing pauses.
class Pause {
 public:
  void wait();

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// K ranks of one process, whose messages are moved in memory. `seed` other than 0 delays messages and reorders those of
/// different senders and tags at random, for tests.
class SharedMemory;
std::shared_ptr<SharedMemory> make_shared_memory(int ranks, uint64_t seed = 0);
std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<SharedMemory> memory, int rank);
/// Ends the waits of all ranks with this failure.
void fail(SharedMemory& memory, int rank, const std::string& why);

/// The process's rank of MPI_COMM_WORLD.
std::unique_ptr<Transport> make_mpi_transport(const Launch& launch);

/// Runs ranks as threads over a transport that may disturb their messages.
void run_ranks(int ranks, const GroupOptions& options, uint64_t seed,
               const std::function<void(const Group&)>& work);

}  // namespace lockstep::parallel
