// Collective calls, made of messages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "core/hash.hpp"
#include "core/platform/host_name.hpp"
#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// One rank, to which nobody sends.
class NoTransport final : public Transport {
 public:
  std::string name() const override { return "one process"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void send(int /*to*/, Tag /*tag*/, Bytes /*data*/) override {}
  std::optional<Message> poll(int /*from*/, Tag /*tag*/) override { return {}; }
  bool all_sent() override { return true; }
};

/// The rest of a group that has ended.
class EndedTransport final : public Transport {
 public:
  explicit EndedTransport(const Transport& of) : name_(of.name()), rank_(of.rank()), size_(of.size()) {}
  std::string name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void send(int /*to*/, Tag /*tag*/, Bytes /*data*/) override { refuse(); }
  std::optional<Message> poll(int /*from*/, Tag /*tag*/) override { refuse(); }
  bool all_sent() override { return true; }

 private:
  [[noreturn]] void refuse() const {
    throw GroupError("a group that has ended", name_, "one that is in use");
  }
  const std::string name_;
  const int rank_, size_;
};

}  // namespace

void end_group(const Group& group) {
  std::unique_ptr<Transport>& transport = group.state().transport;
  transport = std::make_unique<EndedTransport>(*transport);
}

void Pause::wait() {
  // Answers within a step of the work come at once; a longer wait leaves the core for a sixteenth of its time so far.
  constexpr std::chrono::milliseconds kBusy(2);
  constexpr std::chrono::microseconds kLongest(500);
  const std::chrono::nanoseconds waited = SteadyClock::now() - begin_;
  if (waited < kBusy) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLongest, waited / 16));
}

std::optional<Message> Transport::wait(int from, Tag tag, double limit_s) {
  const auto until = SteadyClock::now() + std::chrono::duration<double>(limit_s);
  for (Pause pause;; pause.wait()) {
    if (std::optional<Message> message = poll(from, tag)) return message;
    if (SteadyClock::now() > until) return {};
  }
}

Message Group::State::receive(int from, Tag tag) {
  if (std::optional<Message> message = transport->wait(from, tag, options.wait_limit_s))
    return std::move(*message);
  throw GroupError(from < 0 ? fmt::format("no rank has responded for {:g} s", options.wait_limit_s)
                            : fmt::format("rank {} has not responded for {:g} s", from, options.wait_limit_s),
                   transport->name(), "every rank to reach the same call in that time");
}

Group::Group() : state_(std::make_shared<State>()) { state_->transport = std::make_unique<NoTransport>(); }

Group::Group(std::unique_ptr<Transport> transport, const GroupOptions& options)
    : state_(std::make_shared<State>()) {
  if (!(options.wait_limit_s > 0))
    throw InputError(fmt::format("a wait of {:g} s", options.wait_limit_s), "wait limit",
                     "a positive number");
  state_->transport = std::move(transport);
  state_->options = options;
  const std::vector<Bytes> hosts = all_gather(bytes_of(platform::host_name()));
  const size_t mine = static_cast<size_t>(rank());
  for (size_t r = 0; r < hosts.size(); ++r) {
    if (hosts[r] != hosts[mine] || r == mine) continue;
    ++state_->local_size;
    if (r < mine) ++state_->local_rank;
  }
}

int Group::rank() const { return state_->transport->rank(); }
int Group::size() const { return state_->transport->size(); }
int Group::local_rank() const { return state_->local_rank; }
int Group::local_size() const { return state_->local_size; }
std::string Group::transport() const { return state_->transport->name(); }
const GroupOptions& Group::options() const { return state_->options; }

/// Every rank has heard, through others, of all ranks after ⌈log₂ K⌉ rounds.
void Group::barrier() const {
  for (int step = 1; step < size(); step *= 2) {
    state_->transport->send((rank() + step) % size(), Tag::barrier, {});
    state_->receive((rank() - step + size()) % size(), Tag::barrier);
  }
}

/// Along a binary tree that begins at the root.
void Group::broadcast(Bytes& data, int root) const {
  const int place = (rank() - root + size()) % size();
  int step = 1;
  while (step < size()) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (place % (2 * step) == step)
      data = state_->receive((place - step + root) % size(), Tag::broadcast).data;
    else if (place % (2 * step) == 0 && place + step < size())
      state_->transport->send((place + step + root) % size(), Tag::broadcast, data);
  }
}

std::vector<Bytes> Group::all_to_all(std::vector<Bytes> to) const {
  if (to.size() != static_cast<size_t>(size()))
    throw InputError(fmt::format("{} messages", to.size()), "Group::all_to_all",
                     fmt::format("one for each of {} ranks", size()));
  std::vector<Bytes> from(to.size());
  for (int step = 0; step < size(); ++step) {
    const int other = (rank() + step) % size();
    Bytes& data = to[static_cast<size_t>(other)];
    if (step == 0)
      from[static_cast<size_t>(other)] = std::move(data);
    else
      state_->transport->send(other, Tag::gather, std::move(data));
  }
  for (int step = 1; step < size(); ++step) {
    const int other = (rank() - step + size()) % size();
    from[static_cast<size_t>(other)] = state_->receive(other, Tag::gather).data;
  }
  return from;
}

std::vector<Bytes> Group::all_gather(Bytes mine) const {
  return all_to_all(std::vector<Bytes>(static_cast<size_t>(size()), mine));
}

std::vector<Bytes> Group::gather(Bytes mine) const {
  if (!leads()) {
    state_->transport->send(0, Tag::gather_to_lead, std::move(mine));
    return {};
  }
  std::vector<Bytes> all{std::move(mine)};
  for (int r = 1; r < size(); ++r) all.push_back(state_->receive(r, Tag::gather_to_lead).data);
  return all;
}

std::pair<Bytes, Bytes> Group::exchange_halos(Bytes to_below, Bytes to_above, bool periodic) const {
  const auto neighbour = [&](int step) {
    const int other = rank() + step;
    return periodic ? (other + size()) % size() : other >= 0 && other < size() ? other : -1;
  };
  const int below = neighbour(-1), above = neighbour(+1);
  if (size() == 1)
    return periodic ? std::pair(std::move(to_above), std::move(to_below)) : std::pair<Bytes, Bytes>();
  // Where both neighbours are one rank its message from below this rank comes first.
  if (above >= 0) state_->transport->send(above, Tag::halo, std::move(to_above));
  if (below >= 0) state_->transport->send(below, Tag::halo, std::move(to_below));
  std::pair<Bytes, Bytes> halos;
  if (below >= 0) halos.first = state_->receive(below, Tag::halo).data;
  if (above >= 0) halos.second = state_->receive(above, Tag::halo).data;
  return halos;
}

void expect_agreement(const Group& group, std::span<const Common> common, std::string_view fault) {
  constexpr auto kFault = std::byte('!');
  std::string mine;
  for (const Common& one : common) mine += to_hex(hash128(one.text));
  if (!fault.empty()) mine = fmt::format("!{}", fault);
  const std::vector<Bytes> all = group.all_gather(bytes_of(mine));
  for (size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty() && all[r].front() == kFault)
      throw GroupError(fmt::format("rank {} failed: {}", r, text_of(all[r]).substr(1)), group.transport(),
                       "every rank to continue")
          .on_every_rank();
  const auto refuse_others = [&](std::string_view what, const auto& differs) {
    std::vector<size_t> others;
    for (size_t r = 1; r < all.size(); ++r)
      if (differs(r)) others.push_back(r);
    if (!others.empty())
      throw GroupError(fmt::format("{} of rank{} {} differ from those of rank 0", what,
                                   others.size() > 1 ? "s" : "", fmt::join(others, ", ")),
                       group.transport(), "the same on every rank")
          .on_every_rank();
  };
  refuse_others("calls", [&](size_t r) { return all[r].size() != all[0].size(); });
  const size_t length = all[0].size() / std::max<size_t>(common.size(), 1);
  for (size_t k = 0; k < common.size(); ++k) {
    const auto digest = [&](size_t r) { return std::span(all[r]).subspan(k * length, length); };
    refuse_others(common[k].what, [&](size_t r) { return !std::ranges::equal(digest(r), digest(0)); });
  }
}

void Group::expect_same(std::string_view what, std::string_view text) const {
  expect_agreement(*this, std::array{Common{what, std::string(text)}}, {});
}

Range share(int64_t parts, int rank, int size) { return {parts * rank / size, parts * (rank + 1) / size}; }

}  // namespace lockstep::parallel
