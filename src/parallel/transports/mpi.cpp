// One rank of MPI_COMM_WORLD per process.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string>
#include <utility>

#include "parallel/libraries/mpi_api.hpp"
#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {
namespace {

/// MPI counts with int: longer messages are sent in pieces, the last of which is shorter than this.
constexpr size_t kPiece = size_t{1} << 30;

bool ended_alone = false;

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const mpi::Library& library) : mpi_(library) {
    int begun = 0;
    check(mpi_.initialized(&begun), "MPI_Initialized");
    if (!begun) {
      int level = 0;
      check(mpi_.init(nullptr, nullptr, mpi::kSerialized, &level), "MPI_Init_thread");
      if (level < mpi::kSerialized)
        throw UnsupportedError("an MPI library without threads", "MPI",
                               "one that allows calls of several threads");
      own_ = true;
    }
    check(mpi_.duplicate(mpi_.world, &comm_), "MPI_Comm_dup");
    check(mpi_.set_handler(comm_, mpi_.returns), "MPI_Comm_set_errhandler");
    check(mpi_.rank(comm_, &rank_), "MPI_Comm_rank");
    check(mpi_.size(comm_, &size_), "MPI_Comm_size");
  }
  ~MpiTransport() override {
    constexpr int kMostPauses = 20000;  // of half a millisecond
    try {
      Pause pause;
      for (int k = 0; !ended_alone && !all_sent() && k < kMostPauses; ++k) pause.wait();
    } catch (const GroupError&) {}  // the ranks that would receive are gone
    int ended = 0;
    if (own_ && !ended_alone && mpi_.finalized(&ended) == mpi::kSuccess && !ended) mpi_.finalize();
  }
  std::string name() const override { return fmt::format("MPI ({})", mpi_.version()); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, Tag tag, Bytes data) override {
    const std::lock_guard lock(mutex_);
    Sending& sending = sending_.emplace_back();
    sending.data = std::move(data);
    for (size_t at = 0; at <= sending.data.size(); at += kPiece) {
      mpi::Request& request = sending.requests.emplace_back();
      const size_t count = std::min(kPiece, sending.data.size() - at);
      check(mpi_.send(sending.data.data() + at, static_cast<int>(count), mpi_.bytes, to,
                      static_cast<int>(tag), comm_, &request),
            "MPI_Isend");
    }
    drop_sent();
  }

  std::optional<Message> poll(int from, Tag tag) override {
    const std::lock_guard lock(mutex_);
    drop_sent();
    const auto begun = std::ranges::find_if(
        receiving_, [&](const Receiving& r) { return r.tag == tag && (from < 0 || r.from == from); });
    Receiving* const receiving = begun != receiving_.end() ? &*begun : begin_receive(from, tag);
    if (!receiving) return {};
    int done = 0;
    if (!receiving->begun && !receive_piece(*receiving)) return {};
    check(mpi_.test(&receiving->request, &done, &receiving->status), "MPI_Test");
    if (!done) return {};
    receiving->begun = receiving->last_piece < kPiece;
    if (!receiving->begun) return {};  // more pieces follow
    Message message{receiving->from, std::move(receiving->data)};
    receiving_.remove_if([&](const Receiving& r) { return &r == receiving; });
    return message;
  }

  bool all_sent() override {
    const std::lock_guard lock(mutex_);
    drop_sent();
    return sending_.empty();
  }

 private:
  struct Sending {
    Bytes data;
    std::list<mpi::Request> requests;
  };
  struct Receiving {
    int from = 0;
    Tag tag{};
    Bytes data;
    size_t last_piece = 0;
    bool begun = false;  // a piece has arrived that is not whole yet
    mpi::Request request = nullptr;
    mpi::Status status;
  };

  void check(int result, const char* call) const {
    if (result == mpi::kSuccess) return;
    std::string text(512, '\0');
    int length = 0;
    if (mpi_.error_text(result, text.data(), &length) != mpi::kSuccess) length = 0;
    text.resize(static_cast<size_t>(length));
    throw GroupError(fmt::format("{} failed: {}", call, text), "MPI", "ranks that run and respond");
  }
  void drop_sent() {
    for (Sending& sending : sending_)
      sending.requests.remove_if([&](mpi::Request& request) {
        int done = 0;
        mpi::Status status;
        check(mpi_.test(&request, &done, &status), "MPI_Test");
        return done != 0;
      });
    sending_.remove_if([](const Sending& sending) { return sending.requests.empty(); });
  }
  Receiving* begin_receive(int from, Tag tag) {
    Receiving receiving;
    receiving.tag = tag;
    receiving.from = from < 0 ? mpi::kAnySource : from;
    receiving_.push_back(std::move(receiving));
    if (receive_piece(receiving_.back())) return &receiving_.back();
    receiving_.pop_back();
    return nullptr;
  }
  /// Begins to receive a piece that has arrived.
  bool receive_piece(Receiving& receiving) {
    int arrived = 0, count = 0;
    mpi::Matched matched = nullptr;
    check(mpi_.probe(receiving.from, static_cast<int>(receiving.tag), comm_, &arrived, &matched,
                     &receiving.status),
          "MPI_Improbe");
    if (!arrived) return false;
    receiving.begun = true;
    receiving.from = receiving.status.source;
    check(mpi_.count(&receiving.status, mpi_.bytes, &count), "MPI_Get_count");
    const size_t before = receiving.data.size();
    receiving.last_piece = static_cast<size_t>(count);
    receiving.data.resize(before + receiving.last_piece);
    check(mpi_.receive(receiving.data.data() + before, count, mpi_.bytes, &matched, &receiving.request),
          "MPI_Imrecv");
    return true;
  }

  const mpi::Library& mpi_;
  mpi::Comm comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  bool own_ = false;
  std::mutex mutex_;
  std::list<Sending> sending_;
  std::list<Receiving> receiving_;
};

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

/// MPI begins once in a process.
std::optional<Group>& held_group() {
  static std::optional<Group> group;
  return group;
}

}  // namespace

Launch launch_of_environment() {
  for (const auto& [launcher, rank, size] :
       {std::tuple{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        std::tuple{"MPICH's launcher", "PMI_RANK", "PMI_SIZE"}})
    if (number(size, 1) > 1) return {launcher, number(rank, 0), number(size, 1)};
  // srun with PMIx; without it each task is a run of its own.
  if (number("SLURM_NTASKS", 1) > 1 && std::getenv("PMIX_RANK"))
    return {"srun", number("SLURM_PROCID", 0), number("SLURM_NTASKS", 1)};
  return {};
}

std::unique_ptr<Transport> make_mpi_transport(const Launch& launch) {
  std::string why;
  const mpi::Library* library = launch.launcher.starts_with("MPICH") ? nullptr : mpi::Library::find(&why);
  if (!library)
    throw UnsupportedError(
        fmt::format("{} processes of {}{}{}", launch.size, launch.launcher, why.empty() ? "" : ": ", why),
        "MPI", "mpirun or srun --mpi=pmix of Open MPI, and its library")
        .with_hint("LOCKSTEP_LIBRARY_PATH may name the folder of libmpi.so.40");
  return std::make_unique<MpiTransport>(*library);
}

Group launched(const GroupOptions& options) {
  const Launch launch = launch_of_environment();
  if (launch.launcher.empty()) return {};
  if (!held_group()) held_group().emplace(make_mpi_transport(launch), options);
  return *held_group();
}

void end_launch() { held_group().reset(); }

void abort_launch(int exit_code) noexcept {
  if (launch_of_environment().launcher.empty() || std::exchange(ended_alone, true)) return;
  const mpi::Library* const library = mpi::Library::find(nullptr);
  int begun = 0, ended = 0;
  if (library && library->initialized(&begun) == mpi::kSuccess && begun &&
      library->finalized(&ended) == mpi::kSuccess && !ended)
    library->abort(library->world, exit_code);
}

}  // namespace lockstep::parallel
