// fuzz_host --device cpu --steps 20000 --seed 1
//
// Windows, rows, reshapes, wraps, copies, fills, launches, recordings, replays, streams, moves and destruction in random
// order, against plain memory. LOCKSTEP_FUZZ_COUNT sets the steps. A program of 200 steps has one seed; on a difference it
// is printed. Exit code 1 on a difference, 2 on bad usage, 77 where a device is not there.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "host_model.hpp"
#include "lockstep/error.hpp"

using namespace lockstep;
using namespace lockstep::fuzz;

namespace {

constexpr int kProgram = 200;  // steps of one seed
constexpr Storage kNumbers[] = {Storage::u8, Storage::i32, Storage::u32};

struct Wrong {
  std::string what;
};

Shape shape_of(const std::vector<int64_t>& sizes) {
  Shape shape;
  for (const int64_t s : sizes) shape.push_back(s);
  return shape;
}

template <class E, int N>
Kernel add_kernel() {
  return kernel(fmt::format("fuzz.add{}{}", N, sizeof(E)),
                [](At<N> at, Grid<E, N> in, Out<E, N> out, Param<u32> by) {
                  using T = typename Grid<E, N>::T;
                  out[at] = in[at] + bitcast<T>(by);
                });
}
template <class E, int N>
Kernel own_kernel() {
  return kernel(fmt::format("fuzz.own{}{}", N, sizeof(E)), [](At<N> at, InOut<E, N> x, Param<u32> by) {
    using T = typename InOut<E, N>::T;
    x[at] = x[at] + bitcast<T>(by);
  });
}
const Kernel& kernel_of(Storage storage, size_t rank, bool own) {
  static std::map<std::tuple<Storage, size_t, bool>, Kernel> all;
  const auto key = std::tuple(storage, rank, own);
  if (const auto found = all.find(key); found != all.end()) return found->second;
  const auto make = [&]<class E>(E) {
    if (own) return rank == 1 ? own_kernel<E, 1>() : rank == 2 ? own_kernel<E, 2>() : own_kernel<E, 3>();
    return rank == 1 ? add_kernel<E, 1>() : rank == 2 ? add_kernel<E, 2>() : add_kernel<E, 3>();
  };
  return all[key] = storage == Storage::u8    ? make(uint8_t())
                    : storage == Storage::i32 ? make(i32())
                                              : make(u32());
}
const Kernel& gather_kernel(Boundary rule) {
  static std::map<Boundary, Kernel> all;
  if (const auto found = all.find(rule); found != all.end()) return found->second;
  return all[rule] = kernel("fuzz.gather", [rule](At<1> at, Grid<i32, 2> in, Out<i32, 1> out) {
           out[at] = in.with(rule)(at.x * 2 - 3, 5 - at.x);
         });
}

class Program {
 public:
  Program(const Device& device, uint64_t seed, bool trace) : device_(device), random_(seed), trace_(trace) {
    streams_.resize(1);
    streams_.push_back(device.stream());
    streams_.push_back(device.stream());
  }

  void run(int64_t steps) {
    for (step_ = 0; step_ < steps; ++step_) try {
        one();
      } catch (const Wrong& wrong) {
        throw Wrong{fmt::format("step {} ({}): {}", step_, doing_, wrong.what)};
      } catch (const std::exception& error) {
        throw Wrong{fmt::format("step {} ({}): {}", step_, doing_, error.what())};
      }
    for (const View& view : views_) check(view);
  }
  /// Everything but what a graph or an owner keeps is gone.
  void end() {
    views_.clear();
    graphs_.clear();
    device_.synchronize();
  }

 private:
  struct Recorded {
    Graph graph;
    std::vector<std::function<void(uint32_t)>> steps;
    bool named = false;
    uint32_t by = 0;
  };

  int64_t below(int64_t n) { return int64_t(random_() % uint64_t(n)); }
  /// A view that fits, where a few draws find one.
  template <class Fits>
  View any(Fits fits) {
    View v = any();
    for (int draw = 0; draw < 12 && !fits(v); ++draw) v = any();
    return v;
  }
  bool chance(int percent) { return below(100) < percent; }
  View& any() { return views_[size_t(below(int64_t(views_.size())))]; }
  void note(std::string text) {
    doing_ = std::move(text);
    if (trace_) fmt::print("  {}: {}\n", step_, doing_);
  }
  static void expect(bool holds, const std::string& what) {
    if (!holds) throw Wrong{what};
  }
  /// Whether `act` is refused as it should be; false where it was refused.
  template <class F>
  bool allowed(bool legal, F act) {
    try {
      act();
    } catch (const InputError& error) {
      expect(!legal, fmt::format("refused: {}", error.what()));
      return false;
    }
    expect(legal, "accepted");
    return true;
  }
  /// All work on a stream begins after what the others have.
  const Stream& stream() {
    const auto next = size_t(below(int64_t(streams_.size())));
    if (next != last_) device_.begin_after(streams_[last_], streams_[next]);
    last_ = next;
    return streams_[next];
  }

  void one() {
    if (views_.size() < 3 || chance(8)) return make();
    if (views_.size() > 24) views_.erase(views_.begin() + below(int64_t(views_.size())));
    switch (below(13)) {
      case 0: return rows();
      case 1: return window();
      case 2: return reshape();
      case 3: return wrap();
      case 4: return write();
      case 5: return check(any());
      case 6:
      case 7: return copy({}, stream());
      case 8: return clear({}, stream());
      case 9:
      case 10: return launch({}, stream());
      case 11: return graphs_.size() < 4 && chance(50) ? record() : replay();
      default: return move();
    }
  }

  int64_t axis() {
    static constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 16};
    return kSizes[below(std::size(kSizes))];
  }
  static std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t a = shape.size(); a-- > 0; step *= shape[a]) strides[a] = step;
    return strides;
  }
  Storage storage() {
    static constexpr Storage kAll[] = {Storage::u8,  Storage::i32, Storage::u32,  Storage::u8,  Storage::i32,
                                       Storage::f32, Storage::f16, Storage::bf16, Storage::u64, Storage::f64};
    return kAll[below(device_.info().limits.f64 ? 10 : 8)];
  }

  void make() {
    View v;
    v.storage = storage();
    for (int64_t a = 1 + below(4); a > 0; --a) v.shape.push_back(axis());
    if (chance(3)) v.shape = {4000 + below(5000)};
    v.strides = dense_strides(v.shape);
    note(fmt::format("allocate {} {}", name(v.storage), to_string(shape_of(v.shape))));
    v.buffer = device_.allocate(v.storage, shape_of(v.shape));
    v.block = std::make_shared<Block>();
    v.block->bytes.resize(size_t(v.elements() * v.size()));
    v.block->known.resize(v.block->bytes.size());
    if (!chance(10)) fill(v);
    views_.push_back(std::move(v));
  }
  void fill(const View& v) {
    std::vector<uint8_t> data(size_t(v.elements() * v.size()));
    for (uint8_t& byte : data) byte = uint8_t(random_());
    if (!allowed(!v.twice(), [&] { device_.write(v.buffer, data.data(), int64_t(data.size()), stream()); }))
      return;
    int64_t at = 0;
    for (const int64_t place : v.places())
      for (int64_t k = 0; k < v.size(); ++k) {
        v.block->bytes[size_t(place + k)] = data[size_t(at++)];
        v.block->known[size_t(place + k)] = true;
      }
  }
  void write() {
    const View& v = any();
    note("write");
    fill(v);
  }
  void check(const View& v) {
    note(fmt::format("read {} {}", name(v.storage), to_string(shape_of(v.shape))));
    std::vector<uint8_t> got(size_t(v.elements() * v.size()));
    device_.read(v.buffer, got.data(), int64_t(got.size()), stream());
    const std::vector<uint8_t> expected = v.contents();
    size_t at = 0;
    for (const int64_t place : v.places())
      for (int64_t k = 0; k < v.size(); ++k, ++at)
        if (v.block->known[size_t(place + k)])
          expect(got[at] == expected[at], fmt::format("byte {} of element {} is {}, expected {}", k,
                                                      at / size_t(v.size()), got[at], expected[at]));
  }

  /// Mostly from 0 to `most`, sometimes far off.
  int64_t index(int64_t most) {
    static constexpr int64_t kOdd[] = {-1, INT64_MIN, INT64_MAX, INT32_MAX, INT64_MAX - 1, int64_t(1) << 62};
    return chance(6) ? kOdd[below(std::size(kOdd))] : below(most + 2);
  }
  static bool inside(int64_t first, int64_t count, int64_t size) {
    __extension__ using Wide = __int128;
    return first >= 0 && count >= 0 && Wide(first) + count <= size;
  }
  void rows() {
    View v = any();
    const int64_t first = index(v.shape[0]), count = index(v.shape[0]);
    note(fmt::format("rows {} {} of {}", first, count, v.shape[0]));
    if (!allowed(inside(first, count, v.shape[0]), [&] { v.buffer = v.buffer.rows(first, count); })) return;
    v.first += first * v.strides[0] * v.size();
    v.shape[0] = count;
    views_.push_back(std::move(v));
  }
  void window() {
    View v = any();
    Shape offset, size;
    bool legal = true;
    std::vector<int64_t> sizes;
    for (size_t a = 0; a < v.shape.size(); ++a) {
      const int64_t first = index(v.shape[a] / 2), count = index(v.shape[a] - v.shape[a] / 2);
      legal &= inside(first, count, v.shape[a]);
      offset.push_back(first), size.push_back(count), sizes.push_back(count);
      if (legal) v.first += first * v.strides[a] * v.size();
    }
    note(fmt::format("window {} {} of {}", to_string(offset), to_string(size), to_string(shape_of(v.shape))));
    if (!allowed(legal, [&] { v.buffer = v.buffer.window(offset, size); })) return;
    v.shape = sizes;
    views_.push_back(std::move(v));
  }
  void reshape() {
    View v = any();
    std::vector<int64_t> sizes;
    if (chance(70)) {  // factors of the number of elements
      int64_t rest = v.elements();
      for (int64_t a = below(4); a > 0 && rest > 0; --a) {
        int64_t factor = 1 + below(8);
        while (rest % factor) --factor;
        sizes.push_back(factor), rest /= factor;
      }
      sizes.push_back(rest);
    } else {
      for (int64_t a = below(5); a > 0; --a) sizes.push_back(index(8));
    }
    bool legal = !sizes.empty() && v.dense();
    __extension__ using Wide = __int128;
    Wide n = 1;
    for (const int64_t s : sizes) legal &= s >= 0 && s <= INT32_MAX;
    for (const int64_t s : sizes)
      if (legal) n = n > INT64_MAX && s > 0 ? n : n * s;
    legal &= n == v.elements();
    note(fmt::format("reshape {} to {}", to_string(shape_of(v.shape)), to_string(shape_of(sizes))));
    if (!allowed(legal, [&] { v.buffer = v.buffer.reshape(shape_of(sizes)); })) return;
    v.shape = sizes;
    v.strides = dense_strides(sizes);
    views_.push_back(std::move(v));
  }

  bool wraps() const {
    return device_.info().kind == DeviceKind::cpu || device_.info().kind == DeviceKind::interp;
  }
  void wrap() {
    View v;
    v.storage = storage();
    if (!wraps()) return make();
    if (blocks_.size() < 3 || chance(10)) {
      auto block = std::make_shared<Block>();
      block->foreign = std::make_shared<std::vector<uint64_t>>(256 + 16);
      block->bytes.resize(256 * 8);
      block->known.resize(block->bytes.size(), true);
      if (blocks_.size() == 3) blocks_.erase(blocks_.begin());
      blocks_.push_back(std::move(block));
    }
    v.block = blocks_[size_t(below(int64_t(blocks_.size())))];
    const int64_t size = v.size(), total = int64_t(v.block->bytes.size());
    v.first = below(total / 4) * (chance(5) ? 1 : size) % total;
    Foreign foreign;
    const int64_t rank = 1 + below(4);
    bool legal = v.first % size == 0, empty = false;
    __extension__ using Wide = __int128;
    Wide span = 1;
    bool bad = false;
    for (int64_t a = 0; a < rank; ++a) {
      v.shape.push_back(axis());
      const bool last = a + 1 == rank;
      int64_t stride = last && !chance(4) ? 1 : chance(25) ? 0 : below(40);
      if (chance(3)) stride = index(4);
      v.strides.push_back(stride);
      foreign.strides[size_t(a)] = stride;
    }
    if (foreign.strides == std::array<int64_t, 4>{}) v.strides = dense_strides(v.shape);
    for (size_t a = 0; a < v.shape.size(); ++a) {
      empty |= v.shape[a] == 0;
      if (v.shape[a] > 1) {
        bad |= v.strides[a] < 0 || (a + 1 == v.shape.size() && v.strides[a] != 1);
        span += Wide(v.shape[a] - 1) * v.strides[a];
      }
    }
    legal &= !bad;
    const Wide most = Wide(1) << 61;
    if (empty)
      legal = true;
    else if (legal && span * size >= most)
      legal = false;
    else if (legal && v.first + span * size > total)
      return;  // not this memory's
    foreign.address = uint64_t(reinterpret_cast<uintptr_t>(v.block->foreign->data())) + uint64_t(v.first);
    foreign.owner = v.block->foreign;
    note(fmt::format("wrap {} {} strides {}", name(v.storage), to_string(shape_of(v.shape)),
                     to_string(shape_of(v.strides))));
    if (!allowed(legal, [&] { v.buffer = device_.wrap(v.storage, shape_of(v.shape), foreign); })) return;
    for (size_t a = 0; a < v.shape.size(); ++a)
      if (v.shape[a] == 1) v.strides[a] = 0;
    if (empty) {
      v.block = std::make_shared<Block>();
      v.first = 0;
      v.strides = dense_strides(v.shape);
    }
    views_.push_back(std::move(v));
  }

  using Steps = std::vector<std::function<void(uint32_t)>>;
  void copy(Steps* record, const Stream& on) {
    View from = any();
    View to =
        any([&](const View& v) { return v.storage == from.storage && v.elements() == from.elements(); });
    if (chance(60)) {  // two parts of one
      const View whole = any();
      const int64_t n = whole.shape[0], count = below(n + 1);
      const int64_t first = below(n - count + 1), second = below(n - count + 1);
      from = to = whole;
      for (const auto& [view, at] : {std::pair{&from, first}, {&to, second}}) {
        view->buffer = view->buffer.rows(at, count);
        view->first += at * whole.strides[0] * whole.size();
        view->shape[0] = count;
      }
    }
    const bool legal =
        from.storage == to.storage && from.elements() == to.elements() && from.dense() && to.dense();
    note(fmt::format("copy {} {} to {} {}", name(from.storage), to_string(shape_of(from.shape)),
                     name(to.storage), to_string(shape_of(to.shape))));
    if (!allowed(legal, [&] { device_.copy(from.buffer, to.buffer, on); })) return;
    from.buffer = to.buffer = {};
    perform(record, [from, to](uint32_t) {
      const int64_t n = from.elements() * from.size();
      std::vector<uint8_t> bytes(size_t(n), 0);
      std::vector<bool> known(size_t(n), false);
      for (int64_t k = 0; k < n; ++k) {
        bytes[size_t(k)] = from.block->bytes[size_t(from.first + k)];
        known[size_t(k)] = from.block->known[size_t(from.first + k)];
      }
      for (int64_t k = 0; k < n; ++k) {
        to.block->bytes[size_t(to.first + k)] = bytes[size_t(k)];
        to.block->known[size_t(to.first + k)] = known[size_t(k)];
      }
    });
  }
  void clear(Steps* record, const Stream& on) {
    View v = any();
    note("clear");
    if (!allowed(v.dense(), [&] { device_.clear(v.buffer, on); })) return;
    v.buffer = {};
    perform(record, [v](uint32_t) {
      for (const int64_t place : v.places()) v.set(place, 0);
    });
  }
  static void perform(Steps* record, std::function<void(uint32_t)> step) {
    if (record)
      record->push_back(std::move(step));
    else
      step(0);
  }

  static bool number(const View& v) {
    return v.storage == Storage::u8 || v.storage == Storage::i32 || v.storage == Storage::u32;
  }
  /// `record`: the numbers of the launches may change at replays by the name "by".
  void launch(Steps* record, const Stream& on) {
    if (!record && chance(25)) return gather(on);
    View out = any([](const View& v) { return number(v) && v.shape.size() < 4; });
    View in =
        any([&](const View& v) { return v.storage == out.storage && v.shape.size() == out.shape.size(); });
    if (chance(10)) in = out;
    if (!number(out) || in.storage != out.storage || in.shape.size() != out.shape.size() ||
        out.shape.size() > 3)
      return;
    const bool own = chance(40);
    if (!(own ? out : in).known() || (own && record)) return;
    std::vector<int64_t> extent = out.shape;
    if (chance(20))
      for (int64_t& e : extent) e = below(e + 2);
    bool legal = !out.twice() && (own || !in.meets(out));
    for (size_t a = 0; a < extent.size(); ++a)
      legal &= extent[a] <= out.shape[a] && (own || extent[a] <= in.shape[a]);
    const auto by = uint32_t(below(1 << 20));
    note(fmt::format("launch {} {} over {}", own ? "own" : "add", to_string(shape_of(out.shape)),
                     to_string(shape_of(extent))));
    const Kernel& k = kernel_of(out.storage, extent.size(), own);
    if (!allowed(legal, [&] {
          if (own)
            device_.launch_on(on, k, shape_of(extent), out.buffer, by);
          else if (record)
            device_.launch_on(on, k, shape_of(extent), in.buffer, out.buffer, per_replay("by", by));
          else
            device_.launch_on(on, k, shape_of(extent), in.buffer, out.buffer, by);
        }))
      return;
    if (record && !own) named_ = true, by_ = by;
    View source = own ? out : in;
    source.buffer = out.buffer = {};
    source.shape = extent, out.shape = extent;
    const bool keeps = !record;
    perform(record, [source, out, by, keeps](uint32_t now) {
      const std::vector<int64_t> from = source.places(), to = out.places();
      for (size_t n = 0; n < to.size(); ++n) out.set(to[n], source.value(from[n]) + (keeps ? by : now));
    });
  }
  void gather(const Stream& on) {
    const View in = any([](const View& v) { return v.storage == Storage::i32 && v.shape.size() == 2; });
    if (in.storage != Storage::i32 || in.shape.size() != 2 || !in.known()) return;
    View out;
    out.storage = Storage::i32;
    out.shape = {9};
    out.strides = {1};
    out.block = std::make_shared<Block>();
    out.block->bytes.resize(36), out.block->known.resize(36);
    out.buffer = device_.allocate<i32>({9});
    const auto rule = Boundary(below(3));
    note(fmt::format("gather {} by rule {}", to_string(shape_of(in.shape)), int(rule)));
    device_.launch_on(on, gather_kernel(rule), {9}, in.buffer, out.buffer);
    for (int64_t n = 0; n < 9; ++n) {
      int64_t place = in.first;
      bool there = in.elements() > 0;
      const int64_t wanted[] = {n * 2 - 3, 5 - n};
      for (size_t a = 0; a < 2 && there; ++a) {
        int64_t c = wanted[a];
        const int64_t size = in.shape[a];
        if (rule == Boundary::zero) there = c >= 0 && c < size;
        if (rule == Boundary::clamp) c = std::max<int64_t>(0, std::min(c, size - 1));
        if (rule == Boundary::periodic) c = (c % size + size) % size;
        place += c * in.strides[a] * 4;
      }
      out.set(n * 4, there ? in.value(place) : 0);
    }
    views_.push_back(std::move(out));
  }

  void record() {
    Recorded recorded;
    named_ = false;
    note("record");
    device_.synchronize();
    recorded.graph = device_.record([&] {
      for (int64_t n = 1 + below(5); n > 0; --n) switch (below(4)) {
          case 0: clear(&recorded.steps, {}); break;
          case 1: copy(&recorded.steps, {}); break;
          default: launch(&recorded.steps, {}); break;
        }
      const View& v = any();
      std::vector<uint8_t> got(size_t(v.elements() * v.size()));
      note("read in a recording");
      allowed(false, [&] { device_.read(v.buffer, got.data(), int64_t(got.size())); });
    });
    recorded.named = named_;
    recorded.by = by_;
    first_replay_.push_back(true);
    graphs_.push_back(std::move(recorded));
  }
  void replay() {
    if (graphs_.empty()) return;
    const auto at = size_t(below(int64_t(graphs_.size())));
    Recorded& r = graphs_[at];
    note("replay");
    if (last_ != 0) device_.begin_after(streams_[last_], streams_[0]);
    last_ = 0;
    if (r.named && (first_replay_[at] || chance(50))) {
      r.by = uint32_t(below(1 << 20));
      device_.replay(r.graph, Arguments().set("by", r.by));
    } else {
      device_.replay(r.graph);
    }
    first_replay_[at] = false;
    for (const auto& step : r.steps) step(r.by);
    if (chance(20)) {
      graphs_.erase(graphs_.begin() + int64_t(at));
      first_replay_.erase(first_replay_.begin() + int64_t(at));
    }
  }
  void move() {
    note("move");
    View& from = any();
    View& to = any();
    if (&from == &to) {
      const Buffer same = to.buffer;
      to.buffer = same;
    } else if (chance(50)) {
      to = std::move(from);
      views_.erase(views_.begin() + (&from - views_.data()));
    } else {
      to = from;
    }
    if (chance(10)) device_.synchronize(streams_[size_t(below(3))]);
    if (chance(5)) streams_[1 + size_t(below(2))] = fresh_stream();
  }
  Stream fresh_stream() {
    device_.synchronize();
    last_ = 0;
    return device_.stream();
  }

  Device device_;
  std::mt19937_64 random_;
  bool trace_;
  int64_t step_ = 0;
  std::string doing_;
  std::vector<View> views_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<Recorded> graphs_;
  std::vector<bool> first_replay_;
  std::vector<Stream> streams_;
  size_t last_ = 0;
  bool named_ = false;
  uint32_t by_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::string name = "cpu";
  int64_t steps = 20000;
  uint64_t seed = 1;
  bool trace = false;
  for (int k = 1; k < argc; ++k) {
    const std::string flag = argv[k];
    if (flag == "--trace") {
      trace = true;
    } else if (k + 1 < argc && (flag == "--device" || flag == "--steps" || flag == "--seed")) {
      const std::string value = argv[++k];
      if (flag == "--device") name = value;
      if (flag == "--steps") steps = std::atoll(value.c_str());
      if (flag == "--seed") seed = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      fmt::print(stderr, "usage: fuzz_host [--device NAME] [--steps N] [--seed S] [--trace]\n");
      return 2;
    }
  }
  if (const char* count = std::getenv("LOCKSTEP_FUZZ_COUNT")) steps = std::atoll(count);
  if (steps < 1) {
    fmt::print(stderr, "steps must be positive\n");
    return 2;
  }
  Device device;
  try {
    device = Device::open(name);
  } catch (const UnsupportedError& error) {
    fmt::print("skipped: {}\n", error.what());
    return 77;
  }
  for (int64_t done = 0; done < steps; done += kProgram, ++seed) {
    try {
      Program program(device, seed, trace);
      program.run(std::min<int64_t>(steps - done, kProgram));
      program.end();
    } catch (const Wrong& wrong) {
      fmt::print("{}: seed {}: {}\nfuzz_host --device {} --seed {} --steps {}\n", name, seed, wrong.what,
                 name, seed, kProgram);
      return 1;
    }
  }
  if (const int64_t left = device.counters().allocated_bytes; left != 0) {
    fmt::print("{}: {} bytes are still allocated at the end\n", name, left);
    return 1;
  }
  fmt::print("{}: {} steps agree\n", name, steps);
  return 0;
}
